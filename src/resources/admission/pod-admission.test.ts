import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Node } from '../../kinds/index.ts';
import { collectLogs, MetricRegistry } from '../../lib/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';
import type { Admission, Rejection } from './evaluation.ts';
import { admissionMetrics } from './metrics.ts';
import { PendingAdmissions } from './pending-admissions.ts';
import { PodAdmission } from './pod-admission.ts';

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
  const pending = new PendingAdmissions();
  const steps: string[] = [];
  const environment = {
    node: labelled('a'),
    others: first,
    ending: new Set<PodUid>(),
    fetched: labelled('a') as Node | Error,
    fetches: 0,
    pressures: [] as string[],
    preempted: [] as string[],
    preempt: async (_victim: Pod, _signal: AbortSignal): Promise<void> => {},
    wasAdmitted: false,
    /**
     * Resolves with the result of allocating exclusive resources; undefined for pods that request
     * none.
     */
    allocate: undefined as (() => Promise<Rejection | undefined>) | undefined,
  };
  const admission = new PodAdmission({
    clock,
    logger,
    journal: { step: (_uid, { message }) => steps.push(message) },
    pending,
    facts: () => ({
      standing: 'new',
      node: environment.node,
      others: environment.others,
      ending: environment.ending,
      pressures: environment.pressures,
      isShuttingDown: false,
      strictGroups: true,
      tolerationRules: 'plain',
      podLevelResources: true,
      declaredFeatures: undefined,
    }),
    fetchNode: async () => {
      environment.fetches++;
      if (environment.fetched instanceof Error) throw environment.fetched;
      return environment.fetched;
    },
    preempt: async (victim, signal) => {
      environment.preempted.push(victim.metadata.name);
      await environment.preempt(victim, signal);
    },
    allocator: {
      isRequestedBy: () => environment.allocate !== undefined,
      allocatePod: async () => await environment.allocate?.(),
    },
    wasAdmitted: () => environment.wasAdmitted,
    underPressure,
    observer: admissionMetrics(registry),
  });
  const begin = (pod: Pod) => {
    const outcome: { is?: Admission } = {};
    admission.admit(pod, (decision) => {
      assert.equal(outcome.is, undefined, 'a decision is reported once');
      outcome.is = decision;
    });
    return outcome;
  };
  return { clock, world: environment, admission, pending, steps, begin, records, registry };
}

const selecting = (zone: string) => sized('web', '100m', { nodeSelector: { zone } });
const critical = { priority: 2_000_000_000 };

describe('PodAdmission', () => {
  it('decides synchronously when the pod has nothing to wait for', () => {
    const { begin, world, pending, steps } = aWorld();
    assert.deepEqual(begin(selecting('a')).is, { admit: true });
    world.others = [sized('old', '800m')];
    assert.equal((begin(sized('large', '500m')).is as { reason?: string }).reason, 'OutOfcpu');
    assert.deepEqual([pending.size, steps], [0, []]);
  });

  it('admits a pod that a previous kubelet admitted, although the node labels have changed since', () => {
    const { begin, world } = aWorld();
    world.node = labelled('b');
    world.wasAdmitted = true;
    assert.deepEqual(begin(selecting('a')).is, { admit: true });
  });

  it('fetches the Node object once if only the node labels do not match', async () => {
    const { begin, clock, world, steps } = aWorld();
    world.fetched = labelled('b');
    const matching = begin(selecting('b'));
    assert.match(steps.join(), /NodeAffinity/);
    await clock.advance(0);
    assert.deepEqual(matching.is, { admit: true });
    const other = begin(sized('other', '1m', { nodeSelector: { zone: 'c' } }));
    await clock.advance(0);
    assert.equal((other.is as { reason?: string }).reason, 'NodeAffinity');
    assert.equal(world.fetches, 2);
  });

  it('allocates exclusive resources before it checks the node labels and the capacity', async () => {
    const { begin, clock, world, pending, steps } = aWorld();
    let done: (rejection: Rejection | undefined) => void = () => {};
    world.allocate = () =>
      new Promise((resolve) => {
        done = resolve;
      });
    const allocating = begin(selecting('a'));
    assert.deepEqual(steps, ['allocating exclusive CPUs, memory and devices']);
    await clock.advance(60_000);
    assert.deepEqual([allocating.is, pending.has(podUid('web'))], [undefined, true]);
    done(undefined);
    await clock.advance(0);
    assert.deepEqual([allocating.is, pending.size], [{ admit: true }, 0]);
    const rejection = { reason: 'TopologyAffinityError', message: 'no' };
    world.allocate = async () => rejection;
    const refused = begin(sized('other', '1m', { nodeSelector: { zone: 'c' } }));
    await clock.advance(0);
    assert.deepEqual(refused.is, { admit: false, ...rejection });
  });

  it('uses the cached Node object when the API server does not respond', async () => {
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

  it('keeps a pod pending while another pod terminates, and admits the pending pod right after that', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, admission } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    const waiting = begin(sized('web', '500m'));
    await clock.advance(20_000);
    assert.equal(waiting.is, undefined);
    world.others = [];
    admission.resourcesReleased();
    await clock.advance(0);
    assert.deepEqual(waiting.is, { admit: true });
    assert.equal(clock.pendingTimers, 0);
  });

  it('rejects a pod after waiting 30 seconds for another pod to terminate', async () => {
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

  it('preempts pods for a critical pod, and admits the critical pod when the preempted pods have terminated', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, registry } = aWorld([old]);
    world.preempt = async (_victim, signal) => {
      await clock.sleep(5_000, signal);
      world.others = [];
    };
    const waiting = begin(sized('web', '500m', critical));
    await clock.advance(4_999);
    assert.deepEqual([waiting.is, world.preempted], [undefined, ['old']]);
    await clock.advance(1);
    assert.deepEqual(waiting.is, { admit: true });
    assert.match(
      await registry.expose(new AbortController().signal),
      /kubelet_preemptions\{preemption_signal="cpu"\} 1/,
    );
  });

  it('rejects a critical pod whose victims do not terminate', async () => {
    const old = sized('old', '800m');
    for (const ending of [new Set<PodUid>(), new Set([old.metadata.uid])]) {
      const { begin, clock, world, records } = aWorld([old]);
      world.preempt = async () => {
        world.ending = ending;
        throw new Error('the victim did not terminate');
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

  it('also preempts pods that were admitted into the resources released for a critical pod', async () => {
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

  it('keeps a critical pod pending while a victim exceeds its grace period', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world } = aWorld([old]);
    world.preempt = async (_victim, signal) => {
      world.ending = new Set([old.metadata.uid]);
      await clock.sleep(45_000, signal);
      throw new Error('victim still terminating');
    };
    const waiting = begin(sized('web', '500m', critical));
    await clock.advance(60_000);
    assert.equal(waiting.is, undefined);
    world.others = [];
    await clock.advance(1_000);
    assert.deepEqual([world.preempted, waiting.is], [['old'], { admit: true }]);
  });

  it('preempts pods for a critical pod when terminating pods take too long', async () => {
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

  it('reports no decision for a cancelled admission, and leaves no timers running', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, pending } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    const waiting = begin(sized('web', '500m'));
    await clock.advance(10);
    pending.cancel(podUid('web'));
    await clock.advance(0);
    assert.deepEqual([waiting.is, pending.size, clock.pendingTimers], [undefined, 0, 0]);
  });

  it('reports one decision when the admission of a pod begins again', async () => {
    const old = sized('old', '800m');
    const { begin, clock, world, pending } = aWorld([old]);
    world.ending = new Set([old.metadata.uid]);
    const first = begin(sized('web', '500m'));
    const second = begin(sized('web', '500m'));
    world.others = [];
    await clock.advance(2_000);
    assert.deepEqual([first.is, second.is], [undefined, { admit: true }]);
    await pending[Symbol.asyncDispose]();
    assert.equal(clock.pendingTimers, 0);
  });

  it('decides pending pods independently, and lists the pods whose admission began after that of a given pod', async () => {
    const { begin, clock, world, pending } = aWorld();
    const results: ((rejection: Rejection | undefined) => void)[] = [];
    world.allocate = () => new Promise((resolve) => results.push(resolve));
    const [one, two] = [begin(sized('one', '1m')), begin(sized('two', '1m'))];
    await clock.advance(0);
    assert.deepEqual([...pending.after(podUid('one'))], ['two']);
    assert.deepEqual([...pending.after(podUid('two'))], []);
    results[1]?.(undefined);
    await clock.advance(0);
    assert.deepEqual([one.is, two.is], [undefined, { admit: true }]);
    results[0]?.({ reason: 'OutOfcpu', message: 'no' });
    await clock.advance(0);
    assert.deepEqual(one.is, { admit: false, reason: 'OutOfcpu', message: 'no' });
  });

  it('rejects a pod whose admission fails unexpectedly, and logs the error', async () => {
    const { begin, clock, world, records } = aWorld();
    world.allocate = async () => {
      throw new Error('what?');
    };
    const failed = begin(selecting('a'));
    await clock.advance(0);
    assert.equal((failed.is as { reason?: string }).reason, 'UnexpectedAdmissionError');
    assert.ok(records.toArray().some(({ severity }) => severity === 'error'));
  });

  it('under pressure, rejects a limited number of pods immediately and the remaining ones later', async () => {
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

  it('admits a pending pod when the pressure ends', async () => {
    const { begin, clock, world, pending } = aWorld([], 'wait');
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
    await pending[Symbol.asyncDispose]();
  });

  it('does not keep a critical pod pending under node pressure', async () => {
    const { begin, clock, world } = aWorld([], 'wait');
    world.pressures = ['DiskPressure'];
    const taken = begin(sized('web', '1m', critical));
    await clock.advance(0);
    assert.deepEqual(taken.is, { admit: true });
  });
});
