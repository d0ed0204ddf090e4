import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import type { Volume } from '../../src/kinds/index.ts';
import { realClock } from '../../src/lib/index.ts';
import { HostVolumeFiles, MemoryEmptyDirs } from '../../src/volumes/index.ts';
import { podWith, worldUid } from '../fakes/payload-world.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const noHugePages =
  !(await readFile('/proc/filesystems', 'utf8')).includes('hugetlbfs') && 'needs huge pages';
const { signal } = new AbortController();
const mebibyte = 2 ** 20;

async function mountsBelow(root: string): Promise<readonly string[]> {
  const lines = (await readFile('/proc/self/mounts', 'utf8')).split('\n');
  return lines.filter((line) => line.includes(`${root}/`) && line.includes('kubernetes.io~empty-dir'));
}

/**
 * A container script that fills the volume, reports the number of bytes written and keeps running.
 */
const filling = [
  'stat -c %a:%g /v > /v/mode',
  'dd if=/dev/zero of=/v/small bs=64k count=4 2>/dev/null && echo fits > /v/small-said',
  'said=$(dd if=/dev/zero of=/v/large bs=64k count=64 2>&1); rm /v/large; echo "$said" > /v/large-said',
  'touch /v/ready',
  'trap "exit 0" TERM; while true; do sleep 0.1; done',
].join('; ');

function podOf(name: string) {
  const volumeMounts = [{ name: 'v', mountPath: '/v' }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 2,
      securityContext: { fsGroup: 4321 },
      containers: [{ name: 'main', image: busyboxImageName, command: ['sh', '-c', filling], volumeMounts }],
      volumes: [{ name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
    },
  };
}

describe('memory-backed emptyDir volumes on a node', { skip: notRoot, timeout: 180_000 }, () => {
  let node: KubelingNode;
  before(async () => {
    node = await KubelingNode.open();
  });
  after(async () => {
    assert.deepEqual(await node.leave(), []);
  });
  const volumeOf = (uid: string) =>
    join(node.dataDir, 'kubelet', 'pods', uid, 'volumes', 'kubernetes.io~empty-dir', 'v');
  const filled = async (name: string) => {
    const { metadata } = await node.running(name);
    const directory = volumeOf(metadata.uid);
    await eventually('it to be filled', async () =>
      (await readdir(directory)).includes('ready') ? true : undefined,
    );
    return { directory, uid: metadata.uid };
  };
  const podDirs = () => readdir(join(node.dataDir, 'kubelet', 'pods'));
  const nothingOf = (uid: string) =>
    eventually('nothing to be left of it', async () =>
      (await podDirs()).includes(uid) || (await mountsBelow(node.dataDir)).some((line) => line.includes(uid))
        ? undefined
        : true,
    );

  it('memory-backed volumes have the requested size, mode and group, and stay mounted when kubeling exits', async () => {
    await node.put('a.yaml', podOf('a'));
    const { directory, uid } = await filled('a');
    const facts = await statfs(directory);
    assert.deepEqual([facts.type, facts.blocks * facts.bsize], [0x01021994, mebibyte]);
    assert.equal(await readFile(join(directory, 'mode'), 'utf8'), '3777:4321\n');
    assert.equal(await readFile(join(directory, 'small-said'), 'utf8'), 'fits\n');
    assert.match(await readFile(join(directory, 'large-said'), 'utf8'), /No space left on device/);
    const { ino, ctimeMs } = await stat(join(directory, 'ready'));
    await node.end('SIGKILL');
    await node.start();
    await node.running('a');
    const now = await stat(join(directory, 'ready'));
    assert.deepEqual([now.ino, now.ctimeMs], [ino, ctimeMs]);
    assert.equal((await mountsBelow(node.dataDir)).length, 1);
    await node.take('a.yaml');
    await nothingOf(uid);
  });

  it('a memory-backed volume keeps its content for restarted containers and is mounted once', async () => {
    await node.put('b.yaml', podOf('b'));
    const { directory, uid } = await filled('b');
    const [container] = await node.containersOf('b');
    await rm(join(directory, 'ready'));
    await node.cri.stopContainer({ containerId: container?.id ?? '', timeout: 0n }, signal);
    await filled('b');
    assert.equal((await mountsBelow(node.dataDir)).length, 1);
    await node.take('b.yaml');
    await nothingOf(uid);
  });

  it('memory-backed volumes are unmounted when their pod is deleted while kubeling is down', async () => {
    await node.put('c.yaml', podOf('c'));
    const { uid } = await filled('c');
    await node.end('SIGKILL');
    await node.take('c.yaml');
    await node.start();
    await nothingOf(uid);
  });

  it('memory-backed volumes are removed by kubeling down', async () => {
    await node.put('d.yaml', podOf('d'));
    await filled('d');
  });
});

describe('emptyDir volumes on huge pages', { skip: notRoot || noHugePages }, () => {
  it('huge page volumes are mounted once with the requested page size, and unmounted', async () => {
    const root = await mkdtemp(join(tmpdir(), 'klg-huge-'));
    const podsDir = join(root, 'pods');
    const clock = realClock();
    const dirs = () =>
      new MemoryEmptyDirs({
        podsDir,
        files: new HostVolumeFiles(clock),
        clock,
        allocatable: () => new Map(),
      });
    const volume: Volume = { name: 'v', emptyDir: { medium: 'HugePages-2Mi' } };
    const pod = podWith([volume], {
      securityContext: { fsGroup: 4321 },
      resources: { requests: { 'hugepages-2Mi': '4Mi' } },
    });
    const directory = join(podsDir, worldUid, 'volumes/kubernetes.io~empty-dir/v');
    try {
      for (let kubelet = 0; kubelet < 2; kubelet++) await dirs().create(pod, volume, signal);
      const facts = await statfs(directory);
      assert.deepEqual([facts.type, facts.bsize], [0x958458f6, 2 * mebibyte]);
      const { mode, gid } = await stat(directory);
      assert.deepEqual([mode & 0o7777, gid], [0o2775, 4321]);
      assert.equal((await mountsBelow(root)).length, 1);
      await dirs().remove(worldUid, signal);
      assert.deepEqual(await mountsBelow(root), []);
      await assert.rejects(stat(directory), { code: 'ENOENT' });
    } finally {
      for (const line of await mountsBelow(root)) execFileSync('umount', [line.split(' ')[1] ?? '']);
      await rm(root, { recursive: true });
    }
  });
});
