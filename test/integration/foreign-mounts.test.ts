import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { KubelingNode } from '../kubeling-node.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';

function podOf(name: string, volumes: Readonly<Record<string, object>>) {
  const names = Object.keys(volumes);
  const volumeMounts = names.map((volume) => ({ name: volume, mountPath: `/${volume}` }));
  const command = ['sh', '-c', 'trap "exit 0" TERM; while true; do sleep 0.1; done'];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 2,
      containers: [{ name: 'main', image: busyboxImageName, command, volumeMounts }],
      volumes: names.map((volume) => ({ name: volume, emptyDir: volumes[volume] })),
    },
  };
}

/** Mounts that another program creates below the directories of pods. */
describe('foreign mounts below the directory of a pod', { skip: notRoot, timeout: 400_000 }, () => {
  let node: KubelingNode;
  let precious: string;
  const mounted: string[] = [];

  before(async () => {
    precious = await mkdtemp(join(tmpdir(), 'klg-precious-'));
    await mkdir(join(precious, 'deep'));
    for (const file of ['canary', 'deep/canary']) await writeFile(join(precious, file), 'alive\n');
    node = await KubelingNode.open();
  });

  after(async () => {
    for (const point of mounted) execFileSync('umount', [point]);
    const left = await node?.leave();
    await rm(precious, { recursive: true, force: true });
    assert.deepEqual(left, []);
  });

  const podDir = (uid: string) => join(node.dataDir, 'kubelet', 'pods', uid);
  const emptyDir = (uid: string, volume: string) =>
    join(podDir(uid), 'volumes', 'kubernetes.io~empty-dir', volume);

  function mountAt(point: string, source = precious): void {
    execFileSync('mount', ['--bind', source, point]);
    mounted.push(point);
  }

  function unmount(point: string): void {
    execFileSync('umount', [point]);
    mounted.splice(mounted.indexOf(point), 1);
  }

  const gone = (uid: string) =>
    node.until(
      'the directory to be removed',
      async () => !(await readdir(join(node.dataDir, 'kubelet/pods'))).includes(uid),
    );

  async function isAlive(): Promise<void> {
    for (const file of ['canary', 'deep/canary'])
      assert.equal(await readFile(join(precious, file), 'utf8'), 'alive\n');
  }

  /** Returns the log lines that report that a path cannot be removed. */
  const saidOf = async (path: string) =>
    (await readFile(join(node.dataDir, 'kubeling.log'), 'utf8'))
      .split('\n')
      .filter((line) => line.includes(path));

  /**
   * Creates two foreign mounts, the second inside the first, as a container with mount propagation
   * can.
   */
  function mountTwo(point: string): void {
    // The first mount is private; otherwise the second mount would also appear in the directory
    // that the first one binds.
    execFileSync('mount', ['--bind', '--make-private', precious, point]);
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(point, 'deep')]);
  }

  it('foreign mounts are unmounted with the emptyDir volumes, and nothing in them is deleted', async () => {
    await node.put('a.yaml', podOf('a', { disk: {}, memory: { medium: 'Memory' } }));
    const { uid } = (await node.running('a')).metadata;
    for (const volume of ['disk', 'memory']) {
      const point = join(emptyDir(uid, volume), 'in/with blank');
      await mkdir(point, { recursive: true });
      mountTwo(point);
    }
    await writeFile(join(emptyDir(uid, 'disk'), 'in/besides'), '');
    await node.take('a.yaml');
    await gone(uid);
    await isAlive();
    const left = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
    assert.deepEqual(
      left.filter((line) => line.includes(uid)),
      [],
    );
  });

  for (const [volume, why] of [
    ['disk', (point: string) => `cannot unmount ${point}: it is in use`],
    ['memory', (point: string) => `${point} is mounted in it and in use`],
  ] as const)
    it(`foreign mounts that are in use prevent the removal of an emptyDir on ${volume}, and are reported`, async () => {
      await node.put('c.yaml', podOf('c', { disk: {}, memory: { medium: 'Memory' } }));
      const { uid } = (await node.running('c')).metadata;
      const point = join(emptyDir(uid, volume), 'in');
      await mkdir(point);
      execFileSync('mount', ['--bind', precious, point]);
      const besides = join(emptyDir(uid, volume), 'kept');
      await writeFile(besides, 'kept');
      const user = spawn('sleep', ['1000'], { cwd: join(point, 'deep') });
      try {
        await node.take('c.yaml');
        const reported = `FailedVolumeRemoval: Volumes of the pod cannot be removed: `;
        await node.until('explain to report it', async () => {
          const story = await node.command('explain', 'c');
          return story.includes(reported) && story.includes(why(point));
        });
        // No part of a volume may be removed while the whole volume cannot be removed.
        assert.equal(await readFile(besides, 'utf8'), 'kept');
      } finally {
        user.kill();
      }
      await gone(uid);
      await isAlive();
      const lines = (await saidOf(point)).filter((line) => line.includes('Failed to sync pod'));
      assert.equal(lines.length, 1, lines.join('\n'));
    });

  it('foreign mounts in a volume of an unknown plugin keep the pod terminating until they are unmounted', async () => {
    await node.put('d.yaml', podOf('d', { disk: {} }));
    const { uid } = (await node.running('d')).metadata;
    const point = join(podDir(uid), 'volumes/acme.io~disk/theirs');
    await mkdir(point, { recursive: true });
    mountAt(point);
    await node.take('d.yaml');
    const reported = `Volumes of the pod cannot be removed: mounted volumes=[theirs]: ${point} is mounted`;
    await node.until('explain to report it', async () =>
      (await node.command('explain', 'd')).includes(reported),
    );
    unmount(point);
    await gone(uid);
    await isAlive();
    const lines = (await saidOf(point)).filter((line) => line.includes('Failed to sync pod'));
    assert.equal(lines.length, 1, lines.join('\n'));
  });

  it('foreign mounts prevent the removal of the directory of an orphaned pod', async () => {
    await node.put('b.yaml', podOf('b', { disk: {} }));
    const { uid } = (await node.running('b')).metadata;
    const point = join(podDir(uid), 'plugins', 'of-others');
    const file = join(emptyDir(uid, 'disk'), 'file');
    await mkdir(point);
    await writeFile(file, '');
    // Mounts in an emptyDir are removed with it; all other mounts are kept.
    execFileSync('mount', ['--bind', join(precious, 'canary'), file]);
    mountAt(point);
    await node.end('SIGKILL');
    await node.take('b.yaml');
    await node.start();
    const blocked = (path: string) =>
      node.until(`${path} to block the removal`, async () => (await saidOf(path)).length > 0);
    await blocked(point);
    await isAlive();
    unmount(point);
    await gone(uid);
    await isAlive();
    assert.equal((await saidOf(point)).length, 1, point);
  });
});
