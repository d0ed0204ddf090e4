import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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

/** Real mounts, made by somebody else below the directories of pods. */
describe('what others mount below the directory of a pod', { skip: notRoot, timeout: 400_000 }, () => {
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
      'the directory to be gone',
      async () => !(await readdir(join(node.dataDir, 'kubelet/pods'))).includes(uid),
    );

  async function isAlive(): Promise<void> {
    for (const file of ['canary', 'deep/canary'])
      assert.equal(await readFile(join(precious, file), 'utf8'), 'alive\n');
  }

  /** Where the log says of a path that it cannot go. */
  const saidOf = async (path: string) =>
    (await readFile(join(node.dataDir, 'kubeling.log'), 'utf8'))
      .split('\n')
      .filter((line) => line.includes(path));

  it('keeps its empty directories, is named, and lets them go when it is gone', async () => {
    await node.put('a.yaml', podOf('a', { disk: {}, memory: { medium: 'Memory' } }));
    const { uid } = (await node.running('a')).metadata;
    const [onDisk, inMemory] = [join(emptyDir(uid, 'disk'), 'in/side'), join(emptyDir(uid, 'memory'), 'in')];
    for (const point of [onDisk, inMemory]) {
      await mkdir(point, { recursive: true });
      mountAt(point);
    }
    const besides = join(emptyDir(uid, 'disk'), 'kept');
    await writeFile(besides, 'kept');
    await node.take('a.yaml');
    const explained = async (text: string) =>
      node.until(`explain to name ${text}`, async () => (await node.command('explain', 'a')).includes(text));
    const why = `cannot unmount ${emptyDir(uid, 'memory')}: ${inMemory} is mounted in it`;
    await explained(`FailedVolumeRemoval: Volumes of the pod cannot be removed: ${why}`);
    unmount(inMemory);
    await explained(`cannot delete directory ${onDisk}: it is a mount point`);
    // Nothing of a volume goes while it cannot go as a whole.
    assert.equal(await readFile(besides, 'utf8'), 'kept');
    await isAlive();
    unmount(onDisk);
    await gone(uid);
    await isAlive();
    for (const path of [onDisk, inMemory]) {
      const told = (await saidOf(path)).filter((line) => line.includes('Cannot sync a pod'));
      assert.equal(told.length, 1, told.join('\n'));
    }
  });

  it('keeps the directory of a pod that nobody knows any more', async () => {
    await node.put('b.yaml', podOf('b', { disk: {} }));
    const { uid } = (await node.running('b')).metadata;
    const point = join(podDir(uid), 'plugins', 'of-others');
    const file = join(emptyDir(uid, 'disk'), 'file');
    await mkdir(point);
    await writeFile(file, '');
    // The one that was mounted first is named first.
    mountAt(file, join(precious, 'canary'));
    mountAt(point);
    await node.end('SIGKILL');
    await node.take('b.yaml');
    await node.start();
    const blocked = (path: string) =>
      node.until(`${path} to be in the way`, async () => (await saidOf(path)).length > 0);
    await blocked(file);
    unmount(file);
    await blocked(point);
    await isAlive();
    unmount(point);
    await gone(uid);
    await isAlive();
    for (const path of [point, file]) assert.equal((await saidOf(path)).length, 1, path);
  });
});
