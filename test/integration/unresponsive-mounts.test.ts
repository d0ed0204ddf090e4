import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { hostUnresponsiveMounts, mountSyscalls, realClock, systemRandom } from '../../src/lib/index.ts';
import { hostSubPaths, realRuntimeFiles } from '../../src/runtime/index.ts';
import { HostVolumeFiles } from '../../src/volumes/index.ts';
import { HangingMount, noHangingMounts } from '../fakes/hanging-mount.ts';
import { KubelingNode } from '../kubeling-node.ts';

const clock = realClock();
const { signal } = new AbortController();

describe('file system whose server does not respond', { skip: noHangingMounts, timeout: 300_000 }, () => {
  const silent = hostUnresponsiveMounts(clock, systemRandom());
  const volumes = new HostVolumeFiles(clock, mountSyscalls(), silent);
  const parts = hostSubPaths(clock, silent);
  const files = realRuntimeFiles(silent);
  let root: string;
  let path: string;
  let hanging: HangingMount;

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'klg-silent-'));
    path = join(root, 'with blank/place');
    await mkdir(path, { recursive: true });
    await writeFile(join(root, 'file'), 'text');
    hanging = new HangingMount(path);
  });
  after(async () => {
    hanging?.[Symbol.dispose]();
    await rm(root, { recursive: true });
  });

  it('access to an unresponsive file system blocks no other file operation, however often it is tried', async () => {
    const looks = [
      () => volumes.kindAt(path),
      () => volumes.names(path),
      () => volumes.readLink(join(path, '..data')),
      () => volumes.behind(join(root, 'with blank/../with blank/place')),
      () => volumes.ownerOf(path),
      () => volumes.giveToGroup(path, 7, 'write'),
      () => volumes.makeDirectory(join(path, 'new'), 0o755),
      () => volumes.removeEmptyDirectory(path),
      () => files.kindBehind(join(path, 'deep')),
    ];
    const ends = Promise.all(
      Array.from({ length: 10 }, () => looks.map((look) => look().catch((error: unknown) => error))).flat(),
    );
    // Other files stay accessible while all these operations hang.
    for (let times = 0; times < 100; times++)
      assert.equal(await readFile(join(root, 'file'), 'utf8'), 'text');
    for (const error of await ends) {
      assert.ok(error instanceof Error && 'code' in error, String(error));
      assert.equal(error.code, 'MOUNT_SILENT', error.message);
      assert.equal(error.message, `the file system at ${path} (fuse) does not answer`);
    }
  });

  it('an unresponsive file system is reported to container users without its path', async () => {
    const target = join(root, 'target');
    await assert.rejects(parts.bind(path, 'part', target, signal), {
      code: 'VOLUME_UNUSABLE',
      message: 'its file system is not responding',
    });
    await assert.rejects(parts.readText(path, 'part', 10), { message: 'its file system is not responding' });
  });

  it('an unresponsive file system is detected as mounted, and nothing is deleted through it', async () => {
    assert.equal(await volumes.mountAt(path), 'other');
    assert.deepEqual(await volumes.mountsInside(root), [path]);
    await assert.rejects(volumes.removeTree(join(root, 'with blank')), {
      code: 'VOLUME_REMOVE',
      message: `cannot delete directory ${path}: it is a mount point`,
    });
  });
});

describe('node with unresponsive file systems', { skip: noHangingMounts, timeout: 400_000 }, () => {
  let node: KubelingNode;
  let root: string;
  const mounts = new DisposableStack();

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'klg-dead-'));
    node = await KubelingNode.open();
  });
  after(async () => {
    mounts.dispose();
    const left = await node?.leave();
    await rm(root, { recursive: true });
    assert.deepEqual(left, []);
  });

  const podsDir = () => join(node.dataDir, 'kubelet/pods');
  const hangAt = async (directory: string) => {
    await mkdir(directory, { recursive: true });
    return new HangingMount(directory);
  };
  const podOf = (name: string, volume?: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: busyboxImageName,
          command: ['sleep', '1000'],
          volumeMounts: volume && [{ name: 'v', mountPath: '/v' }],
        },
      ],
      volumes: volume && [{ name: 'v', ...volume }],
    },
  });

  it('kubeling starts, adopts and runs pods, and reports the unresponsive mount', async () => {
    await node.put('before.yaml', podOf('before', { emptyDir: {} }));
    const before = (await node.running('before')).metadata.uid;
    await node.end('SIGKILL');
    const far = join(root, 'far');
    mounts.use(await hangAt(far));
    // Hanging mounts in the directories of deleted pods: one at a path where kubeling mounts
    // volumes, one at another path.
    const gone = ['11111111-aaaa', '22222222-bbbb'] as const;
    await hangAt(join(podsDir(), gone[0], 'volumes/kubernetes.io~local-volume/pv'));
    const foreign = await hangAt(join(podsDir(), gone[1], 'volumes/kubernetes.io~other/pv'));
    // A hanging mount inside a running pod's volume, as if its container had propagated a mount
    // whose server has exited.
    await hangAt(join(podsDir(), before, 'volumes/kubernetes.io~empty-dir/v/in'));
    await node.put('far.yaml', podOf('far', { hostPath: { path: join(far, 'deep'), type: 'Directory' } }));
    await node.put('near.yaml', podOf('near', { emptyDir: { medium: 'Memory' } }));
    await node.start();
    await node.running('near');
    await node.running('before');
    const silent = `MountVolume.SetUp failed for volume "v" : the file system at ${far} (fuse) does not answer`;
    await node.until('the pod to report why it does not start', async () =>
      (await node.command('explain', 'far')).includes(silent),
    );
    const there = async (uid: string) => (await readdir(podsDir())).includes(uid);
    await node.until('the first to be removed', async () => !(await there(gone[0])));
    assert.ok(await there(gone[1]));
    await node.take('before.yaml');
    await node.until('the pod to be deleted', async () => !(await there(before)));
    foreign[Symbol.dispose]();
    await node.until('the other to be deleted', async () => !(await there(gone[1])));
  });

  it('a pod that needs an unresponsive file system starts as soon as the file system responds', async () => {
    mounts.dispose();
    await mkdir(join(root, 'far/deep'));
    await node.running('far');
  });
});
