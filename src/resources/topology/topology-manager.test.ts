import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import type { Rejection } from '../admission/index.ts';
import type { HintProvider, TopologyHint } from './hint-provider.ts';
import { mergeHints, type TopologyPolicy } from './merge-hints.ts';
import { TopologyManager } from './topology-manager.ts';

const signal = new AbortController().signal;
const pod = aPod({
  spec: { initContainers: [{ name: 'init' }], containers: [{ name: 'one' }, { name: 'two' }] },
});

/** A hint provider that records its allocations. */
class Provider implements HintProvider {
  readonly given: string[] = [];
  readonly #ways: readonly TopologyHint[] | undefined;
  outcome: (container: string) => Rejection | undefined | Promise<never> = () => undefined;

  constructor(ways?: readonly (readonly number[])[]) {
    this.#ways = ways?.map((numaNodes) => ({ numaNodes, preferred: numaNodes.length === 1 }));
  }

  getTopologyHints() {
    return this.#ways && new Map([['thing', this.#ways]]);
  }

  getPodTopologyHints() {
    return this.getTopologyHints();
  }

  async allocate(_pod: unknown, { name }: { name: string }, { affinity }: { affinity: TopologyHint }) {
    this.given.push(`${name} ${affinity.numaNodes ?? 'any'}`);
    return await this.outcome(name);
  }
}

function managerOf(
  providers: readonly HintProvider[],
  policy?: TopologyPolicy,
  scope: 'container' | 'pod' = 'container',
) {
  const clock = new VirtualClock();
  const counted: string[] = [];
  const manager = new TopologyManager({
    clock,
    logger: collectLogs(clock).logger,
    providers: () => providers,
    alignment: policy && {
      scope,
      merge: (provided) => mergeHints(provided, { policy, numaNodes: [0, 1] }),
      isGuaranteed: policy === 'single-numa-node',
    },
    observer: {
      admitted: () => counted.push('admitted'),
      refused: () => counted.push('refused'),
      aligned: (of, outcome) => counted.push(`${of} ${outcome}`),
    },
  });
  return { manager, counted };
}

const affinityError = {
  reason: 'TopologyAffinityError',
  message: 'Resources cannot be allocated with Topology locality',
};

describe('the topology manager', () => {
  it('without a topology policy allocates from any NUMA node, init containers first', async () => {
    const [one, two] = [new Provider([[0]]), new Provider([[1]])];
    const { manager } = managerOf([one, two]);
    assert.equal(await manager.admit(pod, signal), undefined);
    assert.deepEqual(one.given, ['init any', 'one any', 'two any']);
    assert.deepEqual(two.given, one.given);
  });

  it('allocates from the NUMA nodes common to all providers', async () => {
    const [one, two] = [new Provider([[0], [1]]), new Provider([[1]])];
    const { manager, counted } = managerOf([one, two], 'single-numa-node');
    assert.equal(await manager.admit(pod, signal), undefined);
    assert.deepEqual(one.given, ['init 1', 'one 1', 'two 1']);
    assert.deepEqual(counted, ['container done', 'container done', 'container done', 'admitted']);
  });

  it('rejects a pod without a common set of NUMA nodes before anything is allocated', async () => {
    for (const scope of ['container', 'pod'] as const) {
      const [one, two] = [new Provider([[0]]), new Provider([[1]])];
      const { manager, counted } = managerOf([one, two], 'single-numa-node', scope);
      assert.deepEqual(await manager.admit(pod, signal), affinityError);
      assert.deepEqual([...one.given, ...two.given], []);
      assert.deepEqual(counted, [`${scope} failed`, 'refused']);
    }
  });

  it('returns a rejection by a provider unchanged, and any other error as unexpected admission error', async () => {
    const provider = new Provider();
    provider.outcome = (container) =>
      container === 'two' ? { reason: 'SMTAlignmentError', message: 'odd' } : undefined;
    const { manager } = managerOf([provider], 'restricted');
    assert.deepEqual(await manager.admit(pod, signal), { reason: 'SMTAlignmentError', message: 'odd' });
    provider.outcome = () => Promise.reject(new Error('the plugin is unavailable'));
    assert.deepEqual(await manager.admit(pod, signal), {
      reason: 'UnexpectedAdmissionError',
      message: 'Allocate failed due to the plugin is unavailable, which is unexpected',
    });
  });

  it('admits pods one at a time in the order of their calls', async () => {
    const provider = new Provider();
    const { promise, resolve } = Promise.withResolvers<never>();
    provider.outcome = () => promise;
    const { manager } = managerOf([provider]);
    const first = manager.admit(aPod(), signal);
    const second = manager.admit(pod, signal);
    await new Promise((done) => setImmediate(done));
    assert.deepEqual(provider.given, ['main any']);
    resolve(undefined as never);
    await Promise.all([first, second]);
    assert.deepEqual(provider.given, ['main any', 'init any', 'one any', 'two any']);
  });

  it('skips an aborted admission that waits for the lock', async () => {
    const provider = new Provider();
    const { promise, resolve } = Promise.withResolvers<never>();
    provider.outcome = () => promise;
    const { manager } = managerOf([provider]);
    const first = manager.admit(aPod(), signal);
    const end = new AbortController();
    const second = manager.admit(pod, end.signal);
    end.abort(new Error('gone'));
    await assert.rejects(second, /gone/);
    resolve(undefined as never);
    assert.equal(await first, undefined);
    assert.deepEqual(provider.given, ['main any']);
  });
});
