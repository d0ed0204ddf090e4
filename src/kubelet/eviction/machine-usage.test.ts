import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import type { CriClient } from '../../cri/index.ts';
import { type CgroupHost, cgroupMagic, VirtualClock } from '../../lib/index.ts';
import { podUid } from '../../pods/index.ts';
import { MachineUsage, type UsageSources } from './machine-usage.ts';

const { signal } = new AbortController();
const devices: Readonly<Record<string, string>> = {
  '/root': 'sda',
  '/images': 'sdb',
  '/layers': 'sda',
  '/own': 'sdc',
};

function machine(parts: {
  readonly files?: Readonly<Record<string, string>>;
  readonly images?: readonly string[];
  readonly containers?: readonly string[];
  readonly stats?: readonly object[] | 'silent';
  readonly usageIn?: UsageSources['usageIn'];
}) {
  const clock = new VirtualClock();
  const { files = {}, images = ['/images'], containers = [], stats = [] } = parts;
  const at = (mountpoint: string) => ({ fsId: { mountpoint } });
  const usage = new MachineUsage({
    clock,
    cri: {
      imageFsInfo: async () => ({
        imageFilesystems: images.map(at),
        containerFilesystems: containers.map(at),
      }),
      listContainerStats: async () => (stats === 'silent' ? await new Promise(() => {}) : { stats }),
    } as unknown as CriClient,
    host: {
      fsType: async () => cgroupMagic.v2,
      read: async (path: string) => {
        const text = files[path];
        if (text === undefined) throw new Error(`There is no ${path}`);
        return text;
      },
    } as unknown as CgroupHost,
    rootDir: '/root',
    podLogsDir: '/logs',
    podsCgroup: '/kubepods',
    cgroupOf: ({ metadata }) => `/kubepods/pod${metadata.uid}`,
    placesOf: () => [
      { name: 'scratch', directory: '/root/scratch', counts: 'files', isScratch: true },
      { name: 'claim', directory: '/root/claim', counts: 'file-system', isScratch: false },
    ],
    usageIn: parts.usageIn ?? (async (directory) => ({ bytes: directory.length, inodes: 1 })),
    fileSystems: {
      async at(path) {
        const device = devices[path];
        if (device === undefined) throw new Error('ENOENT');
        return {
          device,
          capacityBytes: 1_000,
          availableBytes: 300,
          inodes: path === '/own' ? 0 : 90,
          inodesFree: 9,
        };
      },
    },
  });
  return { usage, clock };
}

const layoutOf = async (images: readonly string[], containers: readonly string[] = []) =>
  await machine({ images, containers }).usage.layout(signal);

describe('MachineUsage', () => {
  it('knows where images and containers lie', async () => {
    assert.equal(await layoutOf(['/layers']), 'single');
    assert.equal(await layoutOf(['/images']), 'dedicated');
    assert.equal(await layoutOf(['/images'], ['/images']), 'dedicated');
    assert.equal(await layoutOf(['/images'], ['/layers']), 'split');
    assert.equal(await layoutOf(['/out/of/sight']), 'single');
  });

  it('tells what is left of the node', async () => {
    const { usage, clock } = machine({
      files: {
        '/proc/meminfo': 'MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable: 60 kB\n',
        '/sys/fs/cgroup/memory.stat': 'anon 40960\nfile 30720\ninactive_file 10240\n',
        '/sys/fs/cgroup/kubepods/memory.current': '5000\n',
        '/sys/fs/cgroup/kubepods/memory.stat': 'inactive_file 1000\n',
        '/sys/fs/cgroup/kubepods/memory.max': '9000\n',
        '/proc/sys/kernel/pid_max': '32768\n',
        '/proc/sys/kernel/threads-max': '20000\n',
        '/proc/loadavg': '0.00 0.01 0.05 2/350 4711\n',
      },
      images: ['/own'],
    });
    await usage.layout(signal);
    const atMs = clock.now();
    const disk = (inodes: number | undefined) => ({
      bytes: { atMs, available: 300, capacity: 1_000 },
      inodes: inodes === undefined ? undefined : { atMs, available: 9, capacity: inodes },
    });
    assert.deepEqual(await usage.node(), {
      memory: { atMs, available: 40_960, capacity: 102_400, kernelAvailable: 61_440 },
      podsMemory: { atMs, available: 5_000, capacity: 9_000 },
      nodefs: disk(90),
      imagefs: disk(undefined),
      containerfs: disk(undefined),
      pids: { atMs, available: 19_650, capacity: 20_000 },
    });
  });

  it('leaves out what cannot be known', async () => {
    const { usage } = machine({ images: ['/out/of/sight'] });
    await usage.layout(signal);
    const { nodefs, ...others } = await usage.node();
    assert.ok(nodefs);
    assert.deepEqual(Object.values(others), Array(5).fill(undefined));
  });

  it('tells what pods use, also of what does not answer, and nothing of one that does not run', async () => {
    const uid = podUid('a');
    const stats = [
      {
        attributes: {
          id: 'c',
          metadata: { name: 'main', attempt: 0 },
          labels: { 'io.kubernetes.pod.uid': uid },
        },
        cpu: { timestamp: 0n },
        memory: { workingSetBytes: { value: 70n } },
        writableLayer: { timestamp: 0n, usedBytes: { value: 55n }, inodesUsed: { value: 5n } },
      },
    ];
    const { usage, clock } = machine({
      stats,
      files: {
        '/sys/fs/cgroup/kubepods/poda/memory.current': '100\n',
        '/sys/fs/cgroup/kubepods/poda/memory.stat': 'inactive_file 10\n',
        '/sys/fs/cgroup/kubepods/poda/pids.current': '4\n',
      },
      usageIn: async (directory) =>
        directory === '/root/scratch' ? { bytes: 12, inodes: 2 } : await new Promise(() => {}),
    });
    const asked = ['a', 'b'].map((name) => aPod({ metadata: { name, uid: podUid(name) } }));
    let found: Awaited<ReturnType<MachineUsage['pods']>> | undefined;
    void usage.pods(asked, signal).then((pods) => {
      found = pods;
    });
    await clock.advance(30_000);
    assert.deepEqual(found && [...found], [
      [
        uid,
        {
          memoryBytes: 90,
          processes: 4,
          containers: [{ name: 'main', memoryBytes: 70, rootfs: { bytes: 55, inodes: 5 }, logs: undefined }],
          volumes: new Map([['scratch', { bytes: 12, inodes: 2 }]]),
        },
      ],
    ]);
  });

  it('tells what the kernel knows of a pod when the runtime does not answer', async () => {
    const files = { '/sys/fs/cgroup/kubepods/poda/memory.current': '100\n' };
    const { usage, clock } = machine({ stats: 'silent', files });
    let bytes: number | undefined;
    void usage.pods([aPod({ metadata: { uid: podUid('a') } })], signal).then((found) => {
      bytes = found.get(podUid('a'))?.memoryBytes;
    });
    await clock.advance(5_000);
    assert.equal(bytes, 100);
  });
});
