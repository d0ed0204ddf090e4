import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Node } from '../../kinds/index.ts';
import { collectLogs, MetricRegistry } from '../../lib/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';
import type { Admission, Refusal } from './judgement.ts';
import { admissionMetrics } from './metrics.ts';
import { PodAdmitter } from './pod-admitter.ts';

function sized(name: string, cpu: string, more: PodParts['spec'] = {}): Pod {
  return aPod({
    metadata: { name, uid: podUid(name) },
    spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }], ...more },
  });
}

const labelled = (zone: string): Node => ({
  metadata: { name: 'n1', labels: { zone } },
  status: { allocatable: { cpu: '1', pods: '10' } },
});

function aWorld(first: readonly Pod[] = [], underPressure?: 'refuse' | 'wait') {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const kept = new Set<PodUid>();
  const world = {
    node: labelled('a'),
    others: first,
    ending: new Set<PodUid>(),
    fetched: labelled('a') as Node | Error,
    fetches: 0,
    pressures: [] as string[],
    preempted: [] as string[],
    preempt: async (_victim: Pod): Promise<void> => {},
    /** What becomes of what pods ask for by the piece; nobody asks for any unless given. */
    allot: undefined as (() => Promise<Refusal | undefined>) | undefined,
  };
  const admitter = new PodAdmitter({
    clock,
    logger,
    facts: () => ({
      standing: 'new',
      node: world.node,
      others: world.others,
      ending: world.ending,
      pressures: world.pressures,
      isShuttingDown: false,
      strictGroups: true,
      tolerationRules: 'plain',
      podLevelResources: true,
      declaredFeatures: undefined,
    }),
    fetchNode: async () => {
      world.fetches++;
      if (world.fetched instanceof Error) throw world.fetched;
      return world.fetched;
    },
    preempt: async (victim) => {
      world.preempted.push(victim.metadata.name);
      await world.preempt(victim);
    },
    allotter: {
      isAskedBy: () => world.allot !== undefined,
      allot: async () => await world.allot?.(),
    },
    admitted: { has: (uid) => kept.has(uid), add: (pod) => kept.add(pod.metadata.uid) },
    underPressure,
    observer: admissionMetrics(registry),
  });
  const stopping = new AbortController();
  const begin = (pod: Pod) => {
    const outcome: { is?: Admission | Error } = {};
    admitter.settle(pod, admitter.judge(pod), stopping.signal).then(
      (admission) => {
        outcome.is = admission;
      },
      (error) => {
        outcome.is = error;
      },
    );
    return outcome;
  };
  return { clock, world, admitter, begin, kept, records, registry, stopping };
}

const selecting = (zone: string) => sized('web', '100m', { nodeSelector: { zone } });
const critical = { priority: 2_000_000_000 };

describe('PodAdmitter', () => {
  it('remembers who was taken, and takes him again whatever became of the node', () => {
    const { admitter, world, kept } = aWorld();
    assert.deepEqual(admitter.judge(selecting('a')), { kind: 'admit' });
    assert.ok(kept.has(podUid('web')));
    world.node = labelled('b');
    assert.deepEqual(admitter.judge(selecting('a')), { kind: 'admit' });
  });

  it('asks for the node once when only its labels speak against a pod', async () => {
    const { begin, clock, world, kept } = aWorld();
    world.fetched = labelled('b');
    const taken = begin(selecting('b'));
    await clock.advance(0);
    assert.deepEqual(taken.is, { admit: true });
    assert.ok(kept.has(podUid('web')));
    const refused = begin(sized('other', '1m', { nodeSelector: { zone: 'c' } }));
    await clock.advance(0);
    assert.equal((refused.is as { reason?: string }).reason, 'NodeAffinity');
    assert.equal(world.fetches, 2);
    assert.ok(!kept.has(podUid('other')));
  });

  it('has set aside what a pod asks for by the piece before it looks at anything else', async () => {
    const { begin, clock, world, kept, admitter } = aWorld();
    let done: (refusal: Refusal | undefined) => void = () => {};
    world.allot = () =>
      new Promise((resolve) => {
        done = resolve;
      });
    assert.deepEqual(admitter.judge(selecting('a')), { kind: 'allot' });
    const taken = begin(selecting('a'));
    await clock.advance(60_000);
    assert.deepEqual([taken.is, kept.size], [undefined, 0]);
    done(undefined);
    await clock.advance(0);
    assert.deepEqual([taken.is, kept.size], [{ admit: true }, 1]);
    const refusal = { reason: 'TopologyAffinityError', message: 'no' };
    world.allot = async () => refusal;
    const refused = begin(sized('other', '1m', { nodeSelector: { zone: 'c' } }));
    await clock.advance(0);
    assert.deepEqual(refused.is, { admit: false, ...refusal });
  });

  it('goes by what it knows when the API does not answer', async () => {
    const { begin, clock, world } = aWorld();
    world.fetched = new Error('away');
    const refused = begin(selecting('b'));
    await clock.advance(0);
    assert.deepEqual(refused.is, {
      admit: false,
      reason: 'NodeAffinity',
      message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    });
  });

  it('lets a pod wait for one that is ending, and takes it as soon as that has ended', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, admitter } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    const waiting = begin(sized('web', '500m'));
    await clock.advance(20_000);
    assert.equal(waiting.is, undefined);
    world.others = [];
    admitter.released();
    await clock.advance(0);
    assert.deepEqual(waiting.is, { admit: true });
    assert.equal(clock.pendingTimers, 0);
  });

  it('refuses it after 30 seconds', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    const waiting = begin(sized('web', '500m'));
    await clock.advance(29_999);
    assert.equal(waiting.is, undefined);
    await clock.advance(1);
    assert.deepEqual(waiting.is, {
      admit: false,
      reason: 'OutOfcpu',
      message: "Node didn't have enough resource: cpu, requested: 500, used: 800, capacity: 1000",
    });
    assert.equal(clock.pendingTimers, 0);
  });

  it('ends others for a critical pod, and takes it when they have ended', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, registry, stopping } = aWorld([old]);
    world.preempt = async () => {
      await clock.sleep(5_000, stopping.signal);
      world.others = [];
    };
    const waiting = begin(sized('web', '500m', critical));
    await clock.advance(4_999);
    assert.deepEqual([waiting.is, world.preempted], [undefined, ['old']]);
    await clock.advance(1);
    assert.deepEqual(waiting.is, { admit: true });
    assert.match(await registry.expose(stopping.signal), /kubelet_preemptions\{preemption_signal="cpu"\} 1/);
  });

  it('refuses a critical pod when those that were to end for it do not: there is no room', async () => {
    const old = sized('old', '800m');
    for (const ending of [new Set<PodUid>(), new Set([old.metadata.uid])]) {
      const { begin, clock, world, records } = aWorld([old]);
      world.preempt = async () => {
        world.ending = ending;
        throw new Error('it hangs');
      };
      const waiting = begin(sized('web', '500m', critical));
      await clock.advance(299_000);
      assert.equal(waiting.is, undefined);
      await clock.advance(1_000);
      const { reason } = waiting.is as unknown as { readonly reason?: string };
      assert.deepEqual([reason, world.preempted], ['OutOfcpu', ['old']]);
      assert.ok(records.toArray().some(({ severity }) => severity === 'error'));
    }
  });

  it('ends also those that came for the room which others have made for a critical pod', async () => {
    const { begin, clock, world } = aWorld([sized('old', '800m')]);
    world.preempt = async () => {
      world.others = world.others.some(({ metadata }) => metadata.name === 'old')
        ? [sized('new', '900m')]
        : [];
    };
    const waiting = begin(sized('web', '500m', critical));
    await clock.advance(0);
    assert.deepEqual([world.preempted, waiting.is], [['old', 'new'], { admit: true }]);
  });

  it('lets a critical pod wait for one that takes longer to end for it than it should', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, stopping } = aWorld([old]);
    world.preempt = async () => {
      world.ending = new Set([old.metadata.uid]);
      await clock.sleep(45_000, stopping.signal);
      throw new Error('it takes its time');
    };
    const waiting = begin(sized('web', '500m', critical));
    await clock.advance(60_000);
    assert.equal(waiting.is, undefined);
    world.others = [];
    await clock.advance(1_000);
    assert.deepEqual([world.preempted, waiting.is], [['old'], { admit: true }]);
  });

  it('ends others for a critical pod when those that are ending take too long', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    world.preempt = async () => {
      world.others = [];
    };
    const waiting = begin(sized('web', '500m', critical));
    await clock.advance(29_000);
    assert.deepEqual(world.preempted, []);
    await clock.advance(1_000);
    assert.deepEqual([world.preempted, waiting.is], [['old'], { admit: true }]);
  });

  it('ends with the signal, and leaves nothing behind', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, stopping, kept } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    const waiting = begin(sized('web', '500m'));
    await clock.advance(10);
    stopping.abort(new Error('gone'));
    await clock.advance(0);
    assert.equal((waiting.is as Error).message, 'gone');
    assert.equal(clock.pendingTimers, 0);
    assert.equal(kept.size, 0);
  });

  it('refuses only so many pods at once while the node is short, and the others later', async () => {
    const { begin, clock, world } = aWorld();
    world.pressures = ['DiskPressure'];
    const outcomes = Array.from({ length: 8 }, (_, index) => begin(sized(`pod${index}`, '1m')));
    const refused = () => outcomes.filter(({ is }) => is !== undefined).length;
    await clock.advance(0);
    assert.equal(refused(), 5);
    await clock.advance(12_000);
    assert.equal(refused(), 6);
    await clock.advance(50_000);
    assert.equal(refused(), 8, 'nobody waits for longer than a minute');
    const [last] = outcomes.slice(-1);
    const message = 'The node had condition: [DiskPressure]. ';
    assert.deepEqual(last?.is, { admit: false, reason: 'Evicted', message });
    await clock.advance(60_000);
    const again = begin(sized('again', '1m'));
    await clock.advance(0);
    assert.notEqual(again.is, undefined, 'what was not used comes back');
    assert.equal(clock.pendingTimers, 0);
  });

  it('takes a pod that waits as soon as the node has enough again', async () => {
    const { begin, clock, world, stopping } = aWorld([], 'wait');
    world.pressures = ['DiskPressure', 'MemoryPressure'];
    const waiting = begin(sized('web', '1m'));
    await clock.advance(1_800_000);
    assert.equal(waiting.is, undefined);
    world.pressures = [];
    await clock.advance(2_000);
    assert.deepEqual(waiting.is, { admit: true });
    world.pressures = ['DiskPressure'];
    const late = begin(sized('late', '1m'));
    await clock.advance(3_002_000);
    assert.equal((late.is as { reason?: string }).reason, 'Evicted', 'not for ever');
    stopping.abort(new Error('the test ends'));
  });

  it('does not let a critical pod wait', async () => {
    const { begin, clock, world } = aWorld([], 'wait');
    world.pressures = ['DiskPressure'];
    const taken = begin(sized('web', '1m', critical));
    await clock.advance(0);
    assert.deepEqual(taken.is, { admit: true });
  });
});
