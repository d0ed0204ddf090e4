import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import { cancelledError, collectLogs, KubelingError, quantityOf } from '../../lib/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';
import { type EvictionKill, EvictionManager, type EvictionSettings } from './eviction-manager.ts';
import type { DiskLayout, EvictionStats, NodeObservation, PodResourceUsage } from './eviction-stats.ts';
import type { MemoryHeadroom } from './memory-threshold-notifier.ts';

function below(amount: number, parts: Partial<EvictionThreshold> = {}): EvictionThreshold {
  return {
    signal: 'memory.available',
    kind: 'hard',
    value: { quantity: quantityOf(amount) },
    gracePeriodMs: 0,
    minimumReclaim: undefined,
    ...parts,
  };
}

const settings: EvictionSettings = {
  thresholds: [below(100), below(100, { signal: 'nodefs.available' })],
  transitionMs: 300_000,
  maxPodGraceSeconds: 20,
  localStorage: 'limited',
  memoryGuard: 'off',
};

interface Using extends PodParts {
  readonly name: string;
  readonly memory?: number;
  readonly volume?: number;
}

function named({ name, metadata, spec }: Using): Pod {
  return aPod({ metadata: { name, uid: podUid(name), ...metadata }, spec: { ...spec } });
}

/** A node whose pods use up memory and disk. */
function aNode(parts: Partial<EvictionSettings> = {}) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const environment = {
    memory: 1_000,
    disk: 1_000,
    layout: 'single' as DiskLayout | Error,
    images: 0,
    pods: [] as Using[],
    gone: new Set<string>(),
    /** How long the termination and the clean-up of a pod take. */
    killMs: 500,
    cleanupMs: 1_000,
    looks: [] as number[],
    podLooks: 0,
    layersNeeded: [] as (number | undefined)[],
    /**
     * The memory thresholds whose notification is enabled, and a function that fires the
     * notification.
     */
    alarm: undefined as
      | { readonly rooms: readonly MemoryHeadroom[]; readonly goesOff: () => void }
      | undefined,
    statsError: undefined as Error | undefined,
    podsError: undefined as Error | undefined,
    story: [] as string[],
  };
  const note = (what: string) => environment.story.push(`${clock.monotonicMs() / 1_000} ${what}`);
  const used = (of: 'memory' | 'volume') => environment.pods.reduce((sum, pod) => sum + (pod[of] ?? 0), 0);
  const left = (available: number) => ({ atMs: clock.now(), available, capacity: 100_000 });
  const stats: EvictionStats = {
    async layout() {
      if (environment.layout instanceof Error) throw environment.layout;
      return environment.layout;
    },
    async node(): Promise<NodeObservation> {
      environment.looks.push(clock.monotonicMs());
      if (environment.statsError !== undefined) throw environment.statsError;
      const disk = { bytes: left(environment.disk - used('volume') - environment.images), inodes: undefined };
      return {
        memory: left(environment.memory - used('memory')),
        nodefs: disk,
        imagefs: disk,
        containerfs: disk,
      };
    },
    async pods(asked, { layersAtMs }) {
      environment.podLooks++;
      environment.layersNeeded.push(layersAtMs);
      if (environment.podsError !== undefined) throw environment.podsError;
      const measured = asked.map(({ metadata: { uid, name } }) => {
        const { memory = 0, volume = 0 } = environment.pods.find((pod) => pod.name === name) ?? { memory: 0 };
        const volumes = new Map([['v', { bytes: volume, inodes: 1 }]]);
        const measures: PodResourceUsage = { memoryBytes: memory, processes: 1, containers: [], volumes };
        return [uid, measures] as const;
      });
      return new Map(measured);
    },
  };
  const kill = async (pod: Pod, { graceSeconds, decision }: EvictionKill, signal: AbortSignal) => {
    const { name } = pod.metadata;
    note(`kill ${name} within ${graceSeconds} s: ${decision.message.trim()} (${decision.disruption})`);
    await clock.sleep(Math.min(environment.killMs, graceSeconds * 1_000), signal);
    if (environment.killMs > 1_000_000)
      throw new KubelingError('POD_KILL_TIMEOUT', 'the pod does not terminate');
    environment.pods = environment.pods.filter((each) => each.name !== name);
    clock.timer(environment.cleanupMs, () => environment.gone.add(name));
  };
  const manager = new EvictionManager({
    clock,
    logger,
    settings: { ...settings, ...parts },
    stats,
    memoryNotifier: {
      async set(rooms, goesOff) {
        environment.alarm = { rooms, goesOff };
      },
      [Symbol.dispose]() {
        environment.alarm = undefined;
      },
    },
    activePods: () => environment.pods.map(named),
    kill,
    isCleanedUp: (uid: PodUid) => environment.gone.has(uid),
    reclaim: {
      deleteAllUnusedContainers: async () => void note('dead containers'),
      deleteUnusedImages: async () => {
        note('unused images');
        environment.images = 0;
      },
    },
    collectGarbage: async () => void note('garbage'),
    podEvent: (pod, { reason, annotations }) =>
      note(`event ${pod.metadata.name} ${reason} ${annotations?.['starved_resource'] ?? '-'}`),
    nodeEvent: ({ reason, message }) => note(`event node ${reason}: ${message}`),
    observer: { evicted: (signal) => note(`counted ${signal}`), statsAge: () => {} },
    conditionsChanged: (conditions) => note(`conditions [${conditions.join(' ')}]`),
  });
  const end = new AbortController();
  const run = Promise.resolve().then(() => manager.run(end.signal));
  const stop = async () => {
    end.abort(cancelledError('the test ends'));
    await run;
    await clock.advance(60_000);
    assert.equal(clock.pendingTimers, 0, 'no task is left running');
  };
  return { clock, world: environment, manager, stop, records };
}

const kills = (story: readonly string[]) =>
  story.filter((line) => line.includes(' kill ')).map((line) => line.split(' ')[2]);
const soft = below(200, { kind: 'soft', gracePeriodMs: 30_000 });

describe('EvictionManager', () => {
  it('evicts pods one by one, each after the previous one is cleaned up', async () => {
    const { clock, world, manager, stop } = aNode();
    world.pods = [
      { name: 'a', memory: 300 },
      { name: 'b', memory: 500 },
      { name: 'c', memory: 150 },
    ];
    world.memory = 700;
    await clock.advance(60_000);
    await stop();
    assert.deepEqual(world.story, [
      '0 conditions [MemoryPressure]',
      '0 event node EvictionThresholdMet: Attempting to reclaim memory',
      '0 event b Evicted memory',
      '0 kill b within 1 s: The node was low on resource: memory. Threshold quantity: 100, available: -250. (reported)',
      '0.5 counted memory.available',
      '1.5 garbage',
    ]);
    assert.deepEqual(manager.conditions, ['MemoryPressure'], 'the pod is still terminating');
  });

  it('keeps a node condition for the transition period', async () => {
    const { clock, world, manager, stop } = aNode({ transitionMs: 60_000 });
    world.pods = [{ name: 'a', memory: 950 }];
    await clock.advance(59_000);
    assert.deepEqual(manager.conditions, ['MemoryPressure']);
    await clock.advance(1_001);
    assert.deepEqual(manager.conditions, []);
    await stop();
    assert.equal(world.story.at(-1), '60 conditions []');
  });

  it('without a transition period, evaluates the thresholds of a set node condition only at the normal interval', async () => {
    const { clock, world, stop } = aNode({
      transitionMs: 0,
      thresholds: [below(100, { signal: 'nodefs.available' })],
    });
    world.disk = 50;
    await clock.advance(60_000);
    await stop();
    // Each evaluation reads the resource usage once, and once more after resources were reclaimed.
    assert.ok(world.looks.length <= 14, world.looks.join(' '));
  });

  it('reclaims unused resources first and evicts no pod if that is sufficient', async () => {
    const { clock, world, stop } = aNode();
    Object.assign(world, { disk: 1_000, images: 800, pods: [{ name: 'a', volume: 150 }] });
    await clock.advance(60_000);
    await stop();
    assert.deepEqual(world.story, [
      '0 conditions [DiskPressure]',
      '0 event node EvictionThresholdMet: Attempting to reclaim ephemeral-storage',
      '0 dead containers',
      '0 unused images',
    ]);
  });

  it('evicts a pod if reclaiming does not reach the minimum reclaim', async () => {
    const reclaim = { minimumReclaim: { quantity: quantityOf(1_000) } };
    const { clock, world, stop } = aNode({
      thresholds: [below(100, { signal: 'nodefs.available', ...reclaim })],
    });
    Object.assign(world, { disk: 1_200, images: 1_000, pods: [{ name: 'a', volume: 150 }, { name: 'b' }] });
    await clock.advance(15_000);
    await stop();
    assert.deepEqual(kills(world.story), ['a']);
  });

  it('does not evict critical pods', async () => {
    const { clock, world, stop, records } = aNode();
    const critical = { spec: { priority: 2_000_000_000 } };
    world.pods = [
      { name: 'critical', memory: 950, ...critical },
      { name: 'plain', memory: 50 },
    ];
    await clock.advance(60_000);
    await stop();
    assert.deepEqual(kills(world.story), ['plain']);
    assert.ok(
      [...records].some(({ message }) => message === 'No pod can be evicted under resource pressure'),
    );
  });

  it('for a soft threshold, waits for the grace period of the threshold before it evicts a pod, and gives the evicted pod a grace period to terminate', async () => {
    const { clock, world, stop } = aNode({ thresholds: [soft] });
    world.killMs = 60_000;
    world.pods = [
      { name: 'long', memory: 600, spec: { terminationGracePeriodSeconds: 300 } },
      { name: 'short', memory: 250, spec: { terminationGracePeriodSeconds: 5 } },
    ];
    await clock.advance(29_000);
    assert.deepEqual(kills(world.story), []);
    await clock.advance(2_000);
    assert.match(world.story.at(-1) ?? '', /^30 kill long within 20 s/);
    await stop();
  });

  it("uses the pod's termination grace period for a soft threshold without eviction-max-pod-grace-period", async () => {
    const { clock, world, stop } = aNode({ thresholds: [soft], maxPodGraceSeconds: -1 });
    world.pods = [{ name: 'long', memory: 850, spec: { terminationGracePeriodSeconds: 300 } }];
    await clock.advance(30_100);
    await stop();
    assert.match(world.story.find((line) => line.includes('kill')) ?? '', /^30 kill long within 300 s/);
  });

  it('shortens the grace period of an evicted pod when a hard threshold is met', async () => {
    const { clock, world, stop } = aNode({ thresholds: [soft, below(100)] });
    world.killMs = 60_000;
    world.pods = [{ name: 'slow', memory: 850 }];
    await clock.advance(33_000);
    assert.match(world.story.at(-1) ?? '', /^30 kill slow within 20 s/);
    world.memory = 940;
    await clock.advance(2_500);
    await stop();
    assert.match(
      world.story.find((line) => line.includes('within 1 s')) ?? '',
      /^3[345] kill slow within 1 s/,
    );
    assert.deepEqual(world.story.at(-1)?.split(' ').slice(1), ['counted', 'memory.available']);
  });

  it('evicts another pod if an evicted one does not terminate', async () => {
    const { clock, world, stop } = aNode();
    world.killMs = 2_000_000;
    world.pods = [
      { name: 'stuck', memory: 500 },
      { name: 'other', memory: 450 },
    ];
    await clock.advance(120_000);
    await stop();
    assert.deepEqual(kills(world.story), ['stuck', 'other']);
    assert.equal(world.story.filter((line) => line.endsWith('counted memory.available')).length, 2);
  });

  it('evicts all pods above their storage limits together, before acting on any threshold', async () => {
    const { clock, world, stop } = aNode();
    const limited = { spec: { volumes: [{ name: 'v', emptyDir: { sizeLimit: '10' } }] } };
    world.pods = [
      { name: 'a', volume: 11, ...limited },
      { name: 'b', volume: 10, ...limited },
      { name: 'c', volume: 500, ...limited },
      { name: 'd', memory: 950 },
    ];
    await clock.advance(900);
    assert.deepEqual(kills(world.story), ['a', 'c']);
    assert.match(
      world.story.find((line) => line.includes('kill a')) ?? '',
      /kill a within 1 s: Usage of EmptyDir volume "v" exceeds the limit "10"\. \(unreported\)$/,
    );
    assert.equal(world.story.filter((line) => line.endsWith('counted emptydirfs.limit')).length, 2);
    await clock.advance(10_000);
    await stop();
    assert.deepEqual(kills(world.story), ['a', 'c', 'd']);
  });

  it('does not enforce storage limits if local storage isolation is disabled', async () => {
    const { clock, world, stop } = aNode({ localStorage: 'unlimited' });
    world.pods = [
      { name: 'a', volume: 11, spec: { volumes: [{ name: 'v', emptyDir: { sizeLimit: '10' } }] } },
    ];
    await clock.advance(30_000);
    await stop();
    assert.deepEqual(kills(world.story), []);
  });

  it('evicts nothing until the runtime reports its file systems, and keeps checking thresholds after any failure', async () => {
    const { clock, world, stop } = aNode();
    world.layout = new Error('the runtime does not respond');
    world.pods = [{ name: 'a', memory: 950 }];
    await clock.advance(25_000);
    assert.deepEqual(world.story, []);
    world.layout = 'single';
    world.statsError = new Error('no stats');
    await clock.advance(10_000);
    assert.deepEqual(world.story, []);
    world.statsError = undefined;
    await clock.advance(10_000);
    await stop();
    assert.deepEqual(kills(world.story), ['a']);
  });

  it('ranks pods by priority alone if pod stats are unavailable', async () => {
    const { clock, world, stop } = aNode();
    world.podsError = new Error('no response');
    world.pods = [
      { name: 'dear', memory: 900, spec: { priority: 3 } },
      { name: 'plain', memory: 50 },
    ];
    await clock.advance(500);
    await stop();
    assert.deepEqual(kills(world.story), ['plain']);
  });

  it('treats a soft threshold without a grace period as a hard one', async () => {
    const { clock, world, stop } = aNode({ thresholds: [below(100, { kind: 'soft' })] });
    world.pods = [{ name: 'a', memory: 950 }];
    await clock.advance(500);
    await stop();
    assert.match(world.story.find((line) => line.includes('kill')) ?? '', /kill a within 1 s/);
  });

  it('evaluates every second while memory is near a threshold and then acts immediately', async () => {
    const { clock, world, stop } = aNode();
    world.memory = 3_000;
    await clock.advance(5_500);
    assert.deepEqual(world.looks, [0, 1_000, 2_000, 3_000, 4_000, 5_000]);
    world.pods = [{ name: 'a', memory: 2_950 }];
    await clock.advance(1_000);
    await stop();
    assert.match(world.story[2] ?? '', /^6 event a Evicted/);
  });

  for (const [layout, needed] of [
    ['single', 'known'],
    ['dedicated', 'unneeded'],
  ] as const)
    it(`requests fresh layer sizes only if layers are on the disk under pressure (disk layout ${layout}: sizes are ${needed})`, async () => {
      const { clock, world, stop } = aNode();
      const sinceMs = clock.now();
      Object.assign(world, { layout, disk: 900, pods: [{ name: 'a', volume: 850 }] });
      await clock.advance(5_000);
      await stop();
      assert.deepEqual(kills(world.story), ['a']);
      assert.deepEqual(world.layersNeeded, [layout === 'single' ? sinceMs : undefined]);
    });

  it('evaluates immediately after a kernel notification and requests the next notification', async () => {
    const { clock, world, stop } = aNode();
    world.memory = 60_000;
    await clock.advance(4_000);
    assert.deepEqual(world.alarm?.rooms, [{ signal: 'memory.available', bytes: 59_900 }]);
    const first = world.alarm;
    first?.goesOff();
    await clock.advance(0);
    assert.deepEqual(world.looks, [0, 4_000], 'it was a false alarm');
    world.pods = [{ name: 'a', memory: 59_950 }];
    await clock.advance(1_000);
    first?.goesOff();
    await clock.advance(0);
    assert.deepEqual(kills(world.story), ['a']);
    await clock.advance(10_000);
    assert.notEqual(world.alarm, first);
    await stop();
    assert.equal(world.alarm, undefined);
  });

  it('reads pod stats only when a threshold is met', async () => {
    const { clock, world, stop } = aNode();
    Object.assign(world, { memory: 90_000, disk: 90_000, pods: [{ name: 'a' }] });
    await clock.advance(95_000);
    await stop();
    assert.equal(world.podLooks, 0);
    assert.equal(world.looks.length, 10);
  });

  it('applies the thresholds of nodefs to containerfs when they are the same file system', async () => {
    const nodefs = below(100, { signal: 'nodefs.available' });
    const written = below(99_000, { signal: 'containerfs.available' });
    const { clock, world, stop } = aNode({ thresholds: [written, nodefs] });
    Object.assign(world, { memory: 90_000, disk: 90_000, pods: [{ name: 'a' }] });
    await clock.advance(15_000);
    await stop();
    assert.deepEqual(world.story, []);
  });

  for (const guard of ['on', 'off'] as const) {
    it(`MemAvailable of the kernel counts as available memory only if the flag eviction-memory-guard is on (here ${guard})`, async () => {
      const signal: EvictionSignal = 'memory.available';
      const { observationsOf } = await import('./observations.ts');
      const memory = { atMs: 0, available: 10, capacity: 100, kernelAvailable: 60 };
      assert.equal(observationsOf({ memory }, guard).get(signal)?.available, guard === 'on' ? 60 : 10);
    });
  }
});
