import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { podUid } from '../../pods/index.ts';
import type { DiskUsage, NodeStats, NodeUsage, StatsAges, StatsScope, Usage } from '../../stats/index.ts';
import { ProvidedStats } from './provided-stats.ts';

const { signal } = new AbortController();
const never = () => new Promise<never>(() => {});
const usage: Usage = {
  atMs: 5,
  cpuNanos: undefined,
  nanoCores: undefined,
  memory: undefined,
  swapBytes: undefined,
};
const using = (workingSetBytes: number, availableBytes?: number): Usage => ({
  ...usage,
  memory: { workingSetBytes, availableBytes },
});
const written = (usedBytes: number, inodesUsed: number) => ({ atMs: 5, usedBytes, inodesUsed });

function disk(device: string, inodes = 90): DiskUsage {
  return {
    ...written(700, inodes === 0 ? 0 : 81),
    device,
    capacityBytes: 1_000,
    availableBytes: 300,
    inodes,
    inodesFree: inodes === 0 ? 0 : 9,
  };
}

function runtimeDisk(device: string | undefined, inodes = 90) {
  const own = written(1, 1);
  return { mountPoint: '/somewhere', own, disk: device === undefined ? undefined : disk(device, inodes) };
}

interface Told {
  readonly figures?: Partial<NodeUsage>;
  readonly pods?: NodeStats['pods'];
  readonly answers?: (wish: StatsScope) => Promise<unknown>;
  /** The time of the newest layer sizes that the runtime reports at the given time. */
  readonly layersAtMs?: (nowMs: number) => number;
}

function rig({ figures = {}, pods = [], answers = async () => {}, layersAtMs = () => 0 }: Told) {
  const clock = new VirtualClock();
  const asked: (StatsAges & { readonly wish: StatsScope | 'node' })[] = [];
  const node: NodeUsage = { usage, system: [], ...figures };
  const provider = {
    async node(_: AbortSignal, ages: StatsAges = {}) {
      asked.push({ wish: 'node', ...ages });
      return node;
    },
    async stats(wish: StatsScope, _: AbortSignal, ages: StatsAges = {}) {
      asked.push({ wish, ...ages });
      await answers(wish);
      return { ...node, nodeName: 'n', startTime: '', pods };
    },
    async layersCountedAtMs(uids: ReadonlySet<string>) {
      assert.deepEqual([...uids], ['a', 'b']);
      return layersAtMs(clock.now());
    },
  };
  return { clock, asked, stats: new ProvidedStats({ clock, provider: async () => provider }) };
}

async function layoutOf(images: string | undefined, containers = images) {
  const figures = {
    disk: disk('sda'),
    images: runtimeDisk(images),
    containers: runtimeDisk(containers),
  };
  return await rig({ figures }).stats.layout(signal);
}

const web = {
  name: 'web',
  namespace: 'default',
  uid: 'a',
  startTime: undefined,
  usage: using(90),
  processes: 4,
  containers: [
    {
      name: 'main',
      startTime: undefined,
      usage: using(70),
      rootfs: written(55, 5),
      logs: written(7, 1),
    },
  ],
  volumes: [
    { ...written(12, 2), name: 'scratch', isScratch: true },
    { ...written(99, 9), name: 'claim', isScratch: false },
    { atMs: 5, name: 'uncounted', isScratch: true },
  ],
  otherFiles: [written(3, 1), written(4, 1)],
};
const asked = ['a', 'b'].map((name) => aPod({ metadata: { name, uid: podUid(name) } }));

describe('ProvidedStats', () => {
  it('derives the disk layout from the file systems that the runtime reports', async () => {
    assert.equal(await layoutOf('sda'), 'single');
    assert.equal(await layoutOf('sdb'), 'dedicated');
    assert.equal(await layoutOf('sdb', 'sda'), 'split');
    // The runtime reports no device for the images.
    assert.equal(await layoutOf(undefined), 'single');
  });

  it('does not guess the disk layout when the runtime reports no image file system', async () => {
    await assert.rejects(rig({ figures: { disk: disk('sda') } }).stats.layout(signal), /does not report/);
  });

  it('returns the current free resources of the node', async () => {
    const one = rig({
      figures: {
        usage: using(60, 40),
        machineMemory: { totalBytes: 100, availableBytes: 55 },
        system: [{ name: 'pods', startTime: undefined, usage: using(4_000, 5_000) }],
        disk: disk('sda'),
        images: runtimeDisk('sdb', 0),
        processes: { atMs: 5, max: 20_000, current: 350 },
      },
    });
    const bytes = { atMs: 5, available: 300, capacity: 1_000 };
    assert.deepEqual(await one.stats.node(signal), {
      memory: { atMs: 5, available: 40, capacity: 100, kernelAvailable: 55 },
      podsMemory: { atMs: 5, available: 5_000, capacity: 9_000 },
      nodefs: { bytes, inodes: { atMs: 5, available: 9, capacity: 90 } },
      imagefs: { bytes, inodes: undefined },
      containerfs: undefined,
      pids: { atMs: 5, available: 19_650, capacity: 20_000 },
    });
    assert.deepEqual(one.asked, [{ wish: 'node', maxAgeMs: 0 }]);
  });

  it('omits resources of the node whose amount is unknown', async () => {
    // Without a memory limit of kubepods, the available memory of pods is unknown.
    const system = [{ name: 'pods', startTime: undefined, usage: using(4_000) }];
    const found = await rig({ figures: { usage: using(60, 0), system } }).stats.node(signal);
    assert.deepEqual(Object.values(found), Array(6).fill(undefined));
  });

  it('returns the usage of the requested pods that run', async () => {
    const one = rig({ pods: [web, { ...web, uid: 'another' }] });
    assert.deepEqual(
      [...(await one.stats.pods(asked, {}, signal))],
      [
        [
          'a',
          {
            memoryBytes: 90,
            processes: 4,
            containers: [
              {
                name: 'main',
                memoryBytes: 70,
                rootfs: { bytes: 55, inodes: 5 },
                logs: { bytes: 7, inodes: 1 },
              },
            ],
            volumes: new Map([['scratch', { bytes: 12, inodes: 2 }]]),
            others: { bytes: 7, inodes: 2 },
          },
        ],
      ],
    );
    assert.deepEqual(one.asked, [
      { wish: 'all', maxAgeMs: 0, volumesMaxAgeMs: 0, volumesOf: new Set(['a', 'b']) },
    ]);
  });

  for (const [how, answer] of [
    ['does not respond', never],
    ['fails', () => Promise.reject(new Error('gone'))],
  ] as const)
    it(`returns the memory usage from the kernel when the runtime ${how}`, async () => {
      const one = rig({ pods: [web], answers: async (wish) => wish === 'all' && (await answer()) });
      let bytes: number | undefined;
      void one.stats.pods(asked, {}, signal).then((found) => {
        bytes = found.get(podUid('a'))?.memoryBytes;
      });
      await one.clock.advance(30_000);
      assert.equal(bytes, 90);
    });

  for (const [how, everyMs, tookMs] of [
    ['waits until the runtime has measured', 10_000, 7_000],
    ['waits at most 12 seconds until the runtime has measured', 3_600_000, 12_000],
  ] as const)
    it(`pod stats for an eviction: ${how} the layer sizes at or after the requested time`, async () => {
      const one = rig({ pods: [web], layersAtMs: (nowMs) => nowMs - (nowMs % everyMs) });
      await one.clock.advance(everyMs * 2 + 3_000 - (one.clock.now() % everyMs));
      const [now, began] = [one.clock.now(), one.clock.monotonicMs()];
      let ended = Number.NaN;
      void one.stats.pods(asked, { layersAtMs: now }, signal).then(() => {
        ended = one.clock.monotonicMs();
      });
      await one.clock.advance(30_000);
      assert.equal(ended - began, tookMs);
    });
});
