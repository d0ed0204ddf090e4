import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { MemoryNetworkMounts } from '../../../test/fakes/memory-network-mounts.ts';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { until } from '../../../test/fakes/until.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { PodDirectories } from '../../checkpoints/pod-directories.ts';
import type { Container, Volume } from '../../kinds/index.ts';
import { KubelingError, seededRandom } from '../../lib/index.ts';
import { type Pod, type PodJournal, podUid } from '../../pods/index.ts';
import { type RuntimeFiles, realRuntimeFiles } from '../../runtime/index.ts';
import { type ClaimProblem, NfsVolumes, type VolumePlugin, type VolumeProblem } from '../index.ts';
import { RefreshRetries } from './mount-attempts.ts';
import { VolumeManager, type VolumePlugins } from './volume-manager.ts';

const uid = podUid('u1');
let root = '';

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'volumes-'));
  await mkdir(join(root, 'dir'));
  await writeFile(join(root, 'file'), 'content');
  await symlink('dir', join(root, 'link'));
});
after(async () => {
  await rm(root, { recursive: true });
});

/** Sets up the volumes and returns the event messages. */
async function make(...volumes: readonly Volume[]): Promise<readonly string[]> {
  return await makeWith({}, ...volumes);
}

async function makeWith(others: VolumePlugins, ...volumes: readonly Volume[]): Promise<readonly string[]> {
  const real = realRuntimeFiles();
  const files: RuntimeFiles = {
    ...real,
    kindBehind: async (path) => (path.endsWith('/socket') ? 'socket' : await real.kindBehind(path)),
  };
  const reported: string[] = [];
  const journal: Pick<PodJournal, 'event'> = {
    event: (_pod, { reason, message }) => void reported.push(`${reason} ${message}`),
  };
  const directories = new PodDirectories(join(root, 'kubelet'), files, async () => []);
  const created = new VolumeManager(directories, files, journal, others);
  const pod: Pod = {
    metadata: { name: 'a', namespace: 'default', uid },
    spec: { containers: [using(volumes)], volumes },
    status: {},
  };
  const failure = await created.prepare(pod, new AbortController().signal).then(
    () => undefined,
    (error) => error,
  );
  assert.equal(failure?.code, reported.length === 0 ? undefined : 'VOLUME_UNUSABLE');
  return reported;
}

/** A container that mounts all volumes. */
function using(volumes: readonly Volume[]): Container {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  return { name: 'main', image: 'i', volumeMounts };
}

const at = (name: string, type: string): Volume => ({
  name: 'v',
  hostPath: { path: join(root, name), type },
});

describe('the path types of hostPath volumes', () => {
  const good = [
    ['dir', 'Directory'],
    ['link', 'Directory'],
    ['dir', 'DirectoryOrCreate'],
    ['file', 'File'],
    ['file', 'FileOrCreate'],
    ['socket', 'Socket'],
    ['missing', ''],
  ] as const;
  for (const [name, type] of good)
    test(`accepts the hostPath "${name}" for ${type === '' ? 'no type' : type}`, async () => {
      assert.deepEqual(await make(at(name, type)), []);
    });

  const bad = [
    ['file', 'Directory', 'is not a directory'],
    ['missing', 'Directory', 'is not a directory'],
    ['file', 'DirectoryOrCreate', 'is not a directory'],
    ['dir', 'File', 'is not a file'],
    ['socket', 'FileOrCreate', 'is not a file'],
    ['file', 'Socket', 'is not a socket file'],
    ['file', 'CharDevice', 'is not a character device'],
    ['file', 'BlockDevice', 'is not a block device'],
  ] as const;
  for (const [name, type, what] of bad)
    test(`rejects the hostPath "${name}" for ${type}`, async () => {
      assert.deepEqual(await make(at(name, type)), [
        `FailedMount MountVolume.SetUp failed for volume "v" : hostPath type check failed: ${join(root, name)} ${what}`,
      ]);
    });

  test('accepts /dev/null for hostPath type CharDevice', async () => {
    assert.deepEqual(await make({ name: 'v', hostPath: { path: '/dev/null', type: 'CharDevice' } }), []);
  });

  test('creates paths of hostPath types DirectoryOrCreate and FileOrCreate and keeps existing ones', async () => {
    assert.deepEqual(await make(at('new/deep', 'DirectoryOrCreate'), at('new-file', 'FileOrCreate')), []);
    assert.equal((await stat(join(root, 'new/deep'))).mode & 0o777, 0o755);
    assert.equal(await readFile(join(root, 'new-file'), 'utf8'), '');
    assert.deepEqual(await make(at('file', 'FileOrCreate')), []);
    assert.equal(await readFile(join(root, 'file'), 'utf8'), 'content');
    const [reported] = await make(at('nowhere/file', 'FileOrCreate'));
    assert.match(
      reported ?? '',
      /^FailedMount MountVolume.SetUp failed for volume "v" : .*no such file or directory/,
    );
  });
});

test('reports an event for an NFS server name that looks like a mount option, and sets up the other volumes', async () => {
  const files = new MemoryVolumeFiles();
  const mounts = new MemoryNetworkMounts(files);
  const deps = { podsDir: '/pods', files, mounts, clock: new VirtualClock(), random: seededRandom(1) };
  const nfs = new NfsVolumes(deps);
  const volumes = [
    { name: 'bad', nfs: { server: '-iT/tmp/x', path: '/fstab' } },
    { name: 'good', nfs: { server: 'files.test', path: '/export' } },
  ];
  assert.deepEqual(await makeWith({ nfs }, ...volumes), [
    'FailedMount MountVolume.SetUp failed for volume "bad" : invalid nfs.server: must be a host name, an IPv4 address or an IPv6 address: current value is "-iT/tmp/x"',
  ]);
  assert.equal(await mounts.isMounted(nfs.mountPathOf(uid, 'good')), true);
});

test('creates a disk-backed emptyDir, and rejects other media if the node does not support memory-backed volumes', async () => {
  assert.deepEqual(await make({ name: 'v', emptyDir: {} }), []);
  assert.ok((await stat(join(root, 'kubelet/pods/u1/volumes/kubernetes.io~empty-dir/v'))).isDirectory());
  for (const medium of ['Memory', 'HugePages', 'HugePages-2Mi'])
    assert.deepEqual(await make({ name: 'v', emptyDir: { medium } }), [
      `FailedMount MountVolume.SetUp failed for volume "v" : empty directories on the medium "${medium}" are not supported by this node yet`,
    ]);
});

test('reports each volume of an unsupported type', async () => {
  const reported = await make(
    { name: 'a', downwardAPI: {} },
    { name: 'b', nfs: { server: 's', path: '/' } },
    { name: 'c', emptyDir: {} },
    { name: 'd', image: { reference: 'busybox' } },
  );
  const message = (name: string, kind: string) =>
    `FailedMount MountVolume.SetUp failed for volume "${name}" : volumes of the kind ${kind} are not supported by this node yet`;
  // The runtime mounts image volumes, so they are not reported.
  assert.deepEqual(reported, [message('a', 'downwardAPI'), message('b', 'nfs')]);
});

test('reports claim problems in one event and mount failures in one event each', async () => {
  const problems: readonly ClaimProblem[] = [
    { kind: 'unprocessed', volume: 'd', message: 'error processing PVC default/d: PVC is not bound' },
    { kind: 'unmounted', volume: 'c', message: 'MountVolume.SetUp failed', reason: 'FailedMount' },
    { kind: 'unprocessed', volume: 'b', message: 'error processing PVC default/b: PVC is being deleted' },
  ];
  const claimed = {
    of: () => new Map(),
    groupsOf: () => [],
    prepare: async () => problems,
    refresh: async () => {},
    remove: async () => {},
  };
  const claim = (name: string): Volume => ({ name, persistentVolumeClaim: { claimName: name } });
  const reported = await makeWith({ claimed }, claim('b'), claim('c'), claim('d'), {
    name: 'a',
    downwardAPI: {},
  });
  assert.deepEqual(reported, [
    'FailedMount MountVolume.SetUp failed for volume "a" : volumes of the kind downwardAPI are not supported by this node yet',
    'FailedMount MountVolume.SetUp failed',
    'FailedMount Unable to attach or mount volumes: unmounted volumes=[a b c d], unattached volumes=[], failed to process volumes=[b d]: error processing PVC default/d: PVC is not bound; error processing PVC default/b: PVC is being deleted',
  ]);
});

/** Builds a VolumeManager with the given plugins. */
function plain(others: VolumePlugins): VolumeManager {
  const files = realRuntimeFiles();
  const directories = new PodDirectories(join(root, 'kubelet'), files, async () => []);
  return new VolumeManager(directories, files, { event: () => {} }, others);
}

test('rejects a pod with VOLUME_ATTACH_LIMIT when the attach limit prevents the attachment of its claimed volume', async () => {
  const why = 'MountVolume.WaitForAttach failed for volume "pv" : full';
  const problem = {
    kind: 'unmounted',
    volume: 'v',
    message: why,
    reason: 'FailedMount',
    room: 'none',
  } as const;
  const claimed = {
    of: () => new Map(),
    groupsOf: () => [],
    prepare: async () => [problem],
    refresh: async () => {},
    remove: async () => {},
  };
  const volumes: readonly Volume[] = [{ name: 'v', persistentVolumeClaim: { claimName: 'v' } }];
  const pod: Pod = {
    metadata: { name: 'a', namespace: 'default', uid },
    spec: { containers: [], volumes },
    status: {},
  };
  await assert.rejects(plain({ claimed }).prepare(pod, new AbortController().signal), {
    code: 'VOLUME_ATTACH_LIMIT',
    message: `Node has reached its volume attachment limit, rejecting pod. ${why}`,
  });
});

test('rejects a pod with VOLUME_ATTACH_LIMIT when the attach limit prevents the attachment of its in-tree inline volume', async () => {
  const why = 'MountVolume.WaitForAttach failed for volume "pd" : full';
  const code = { value: 'VOLUME_UNUSABLE' as 'VOLUME_UNUSABLE' | 'VOLUME_ATTACH_LIMIT' };
  const csi = {
    inline: () => undefined,
    setUpInline: async () => {
      throw new KubelingError(code.value, why, { details: { stage: 'MountVolume.WaitForAttach failed' } });
    },
    maintainInline: () => {},
    remove: async () => {},
  };
  const pod = podOf([{ name: 'v', gcePersistentDisk: { pdName: 'd' } }], ['v']);
  const volumes = plain({ csi });
  await assert.rejects(volumes.prepare(pod, new AbortController().signal), {
    code: 'VOLUME_UNUSABLE',
    message: why,
  });
  code.value = 'VOLUME_ATTACH_LIMIT';
  await assert.rejects(volumes.prepare(pod, new AbortController().signal), {
    code: 'VOLUME_ATTACH_LIMIT',
    message: `Node has reached its volume attachment limit, rejecting pod. ${why}`,
  });
});

test('labels the metrics of CSI volumes with the driver', () => {
  const path = join(root, 'kubelet/pods', uid, 'volumes/kubernetes.io~csi/x/mount');
  const csi = {
    inline: (_pod: Pod, { csi: of }: Volume) =>
      of && {
        hostPath: path,
        specName: 'x',
        readOnly: false,
        plugin: { name: `kubernetes.io/csi:${of.driver}` },
      },
    setUpInline: async () => {},
    maintainInline: () => {},
    remove: async () => {},
  };
  const claimed = {
    of: () =>
      new Map([
        [
          'b',
          {
            kind: 'path' as const,
            hostPath: path,
            readOnly: false,
            relabel: true,
            specName: 'x',
            plugin: { name: 'kubernetes.io/csi:two' },
          },
        ],
      ]),
    groupsOf: () => [],
    prepare: async () => [],
    refresh: async () => {},
    remove: async () => {},
  };
  const mounts = ['a', 'b'].map((name) => ({ name, mountPath: `/${name}` }));
  const pod: Pod = {
    metadata: { name: 'a', namespace: 'default', uid },
    spec: {
      containers: [{ name: 'c', image: 'i', volumeMounts: mounts }],
      volumes: [
        { name: 'a', csi: { driver: 'one' } },
        { name: 'b', persistentVolumeClaim: { claimName: 'b' } },
      ],
    },
    status: {},
  };
  assert.deepEqual(plain({ csi, claimed }).pluginsOf(pod).toSorted(), [
    'kubernetes.io/csi:one',
    'kubernetes.io/csi:two',
  ]);
});

test('observes volume_unmount and unmap_volume as separate operations', async () => {
  const observed: string[] = [];
  const times = {
    clock: new VirtualClock(),
    random: seededRandom(1),
    observe: (operation: string, plugin: VolumePlugin, { outcome }: { readonly outcome: string }) =>
      void observed.push(`${operation} ${plugin.name} ${outcome} ${plugin.origin}`),
  };
  const origin = 'in-tree' as const;
  const plugin = { name: 'kubernetes.io/csi:d', origin };
  const claimed = {
    of: () =>
      new Map([
        ['a', { kind: 'block' as const, devicePath: '/d', readOnly: false, plugin }],
        [
          'b',
          {
            kind: 'path' as const,
            hostPath: '/p',
            readOnly: false,
            relabel: false,
            specName: 'b',
            plugin: { name: 'p' },
          },
        ],
      ]),
    groupsOf: () => [],
    prepare: async () => [],
    refresh: async () => {},
    remove: async () => {},
  };
  const volumes = ['a', 'b'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const pod = podOf(volumes, ['a', 'b']);
  const created = plain({ claimed, times });
  await created.prepare(pod, new AbortController().signal);
  await created.remove(pod, new AbortController().signal);
  assert.deepEqual(observed, [
    'map_volume kubernetes.io/csi:d success in-tree',
    'volume_mount p success undefined',
    'volume_unmount p success undefined',
    'unmap_volume kubernetes.io/csi:d success in-tree',
  ]);
});

/** Builds a pod with these volumes, whose container mounts only the named ones. */
function podOf(volumes: readonly Volume[], mounted: readonly string[]): Pod {
  const container = using(volumes.filter(({ name }) => mounted.includes(name)));
  return {
    metadata: { name: 'a', namespace: 'default', uid },
    spec: { containers: [container], volumes },
    status: {},
  };
}

function createHarness(others: VolumePlugins = {}, mountPoints: readonly string[] = []) {
  const clock = new VirtualClock();
  const reported: string[] = [];
  const journal: Pick<PodJournal, 'event'> = {
    event: (_pod, { reason, message }) => void reported.push(`${reason} ${message}`),
  };
  const files = realRuntimeFiles();
  const directories = new PodDirectories(join(root, 'kubelet'), files, async () => mountPoints);
  const times = { clock, random: seededRandom(1), observe: () => {} };
  return {
    clock,
    told: reported,
    volumes: new VolumeManager(directories, files, journal, { times, ...others }),
  };
}

test('does not set up a volume that no container uses', async () => {
  const { told, volumes } = createHarness();
  const unused: readonly Volume[] = [
    { name: 'a', hostPath: { path: join(root, 'missing'), type: 'Socket' } },
    { name: 'b', nfs: { server: 's', path: '/' } },
    { name: 'c', gitRepo: { repository: 'r' } },
  ];
  await volumes.prepare(podOf([...unused, at('dir', 'Directory')], ['v']), new AbortController().signal);
  assert.deepEqual(told, []);
});

test('retries a failed volume with growing back-off', async () => {
  const { clock, volumes } = createHarness();
  const pod = podOf([at('missing', 'Socket')], ['v']);
  const waits: number[] = [];
  for (let tries = 0; tries < 8; tries++) {
    const error = await volumes.prepare(pod, new AbortController().signal).catch((failure) => failure);
    assert.ok(error instanceof KubelingError);
    const waitMs = Number(error.details['retryAtMs']) - clock.monotonicMs();
    waits.push(waitMs);
    await clock.advance(waitMs);
  }
  for (const [index, waitMs] of waits.entries()) {
    const least = Math.min(500 * 2 ** index, 10_000);
    assert.ok(waitMs >= least && waitMs <= least * 1.2, waits.join());
  }
});

test("a volume whose mount hangs does not block the pod's other volumes, and the timeout event contains its last error", async () => {
  let tries = 0;
  const never = new Promise<never>(() => {});
  const claimed = {
    of: () => new Map(),
    groupsOf: () => [],
    prepare: (): Promise<readonly ClaimProblem[]> =>
      tries++ === 0
        ? Promise.resolve([{ kind: 'unmounted', volume: 'c', message: 'no route', reason: 'FailedMount' }])
        : never,
    refresh: async () => {},
    remove: async () => {},
  };
  const { told, volumes } = createHarness({ claimed });
  const claim = { name: 'c', persistentVolumeClaim: { claimName: 'c' } };
  const pod = podOf([claim, { name: 'e', emptyDir: {} }, at('dir', 'Directory')], ['c', 'e', 'v']);
  volumes.reportTimedOut(pod);
  await assert.rejects(volumes.prepare(pod, new AbortController().signal), { message: 'no route' });
  assert.deepEqual(told.splice(0), ['FailedMount no route']);
  void volumes.prepare(pod, new AbortController().signal);
  await until('the other volumes to be set up', () => {
    volumes.reportTimedOut(pod);
    return !told.splice(0).some((line) => line.includes('[c e'));
  });
  volumes.reportTimedOut(pod);
  assert.deepEqual(told, [
    'FailedMount Unable to attach or mount volumes: unmounted volumes=[c], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition; "c": no route',
  ]);
});

test('keeps the volume directories of a pod while anything is mounted in them', async () => {
  const volumesDir = join(root, 'kubelet/pods', uid, 'volumes');
  const points = [
    join(root, 'kubelet/pods/other/volumes/acme.io~disk/x'),
    join(volumesDir, 'acme.io~disk/y/inside'),
    join(volumesDir, 'acme.io~disk/x'),
  ];
  const { told, volumes } = createHarness({}, points);
  const pod = podOf([], []);
  const removal = () => volumes.remove(pod, new AbortController().signal);
  const first = `${join(volumesDir, 'acme.io~disk/y/inside')} is mounted`;
  for (let tries = 0; tries < 2; tries++)
    await assert.rejects(removal, { code: 'VOLUME_REMOVE', message: first });
  points.splice(1, 1);
  await assert.rejects(removal, { code: 'VOLUME_REMOVE' });
  points.pop();
  await removal();
  assert.deepEqual(told, [
    `FailedVolumeRemoval Volumes of the pod cannot be removed: mounted volumes=[x y]: ${first}`,
    `FailedVolumeRemoval Volumes of the pod cannot be removed: mounted volumes=[x]: ${join(volumesDir, 'acme.io~disk/x')} is mounted`,
  ]);
});

test('retries a failed refresh of volume content with growing back-off until it succeeds', async () => {
  const clock = new VirtualClock();
  const waits: number[] = [];
  const requestSync = (of: string, delayMs: number) => void waits.push(of === uid ? delayMs : Number.NaN);
  const renewals = new RefreshRetries({ clock, random: seededRandom(1), requestSync });
  let problems: readonly VolumeProblem[] = [{ volume: 'v', message: 'full', content: 'earlier' }];
  const filled = { of: () => new Map(), prepare: async () => problems, remove: async () => {} };
  const { volumes, told } = createHarness({ renewals, filled });
  const pod = podOf([], []);
  const refresh = () => volumes.refresh(pod, new AbortController().signal);
  for (let tries = 0; tries < 10; tries++) await refresh();
  const least = (index: number) => Math.min(500 * 2 ** index, 122_000);
  for (const [index, waitMs] of waits.entries())
    assert.ok(waitMs >= least(index) && waitMs <= least(index) * 1.2, waits.join());
  assert.equal(waits.length, 10);
  assert.deepEqual([...new Set(told)], ['FailedMount MountVolume.SetUp failed for volume "v" : full']);
  problems = [];
  await refresh();
  assert.equal(waits.length, 10);
  problems = [{ volume: 'v', message: 'full', content: 'earlier' }];
  await refresh();
  assert.ok(Number(waits[10]) < 1_000, waits.join());
});

test('rejects the volumes of a pod that uses more than 256 volumes in memory, before any is mounted', async () => {
  const mounted: string[] = [];
  const inMemory = {
    create: async (_pod: Pod, { name }: Volume) => void mounted.push(name),
    remove: async () => {},
  };
  const plugins = { inMemory } as unknown as VolumePlugins;
  const onDisk: Volume = { name: 'disk', emptyDir: {} };
  const most = Array.from(
    { length: 256 },
    (_, index): Volume => ({ name: `v${index}`, emptyDir: { medium: 'Memory' } }),
  );
  assert.deepEqual(await makeWith(plugins, onDisk, ...most), []);
  assert.equal(mounted.length, 256);
  mounted.length = 0;
  const [event = '', ...rest] = await makeWith(plugins, onDisk, ...most, { name: 's', secret: {} });
  assert.match(
    event,
    /^FailedMount MountVolume.SetUp failed for volume "s" : a pod may use at most 256 volumes in memory/,
  );
  assert.deepEqual([rest, mounted], [[], []]);
});
