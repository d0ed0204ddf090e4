import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { podOf, runtimePodOf } from '../../test/fakes/pod-sketch.ts';
import { settle } from '../../test/fakes/virtual-clock.ts';
import { type HeldSync, WorkerFixture } from '../../test/fakes/worker-fixture.ts';
import type { PodUid } from '../pods/index.ts';
import type { KillOptions, StatusFn, UpdateType } from './updates.ts';

const uids = ['a', 'b', 'c', 'd'] as const;
type Uid = (typeof uids)[number];

/** `a` and `b` are static pods of one name, `c` and `d` pods of the API. */
const sketchOf = (uid: Uid) =>
  uid === 'a' || uid === 'b'
    ? ({ uid, name: 'static', source: 'file' } as const)
    : ({ uid, name: uid, source: 'api' } as const);

const uid = fc.constantFrom(...uids);
const step = fc.oneof(
  fc.record({
    do: fc.constant('update' as const),
    uid,
    updateType: fc.constantFrom<UpdateType>('create', 'create', 'update', 'sync', 'kill'),
    override: fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined }),
    deletion: fc.option(fc.integer({ min: 0, max: 60 }), { nil: undefined, freq: 4 }),
    phase: fc.constantFrom('Pending', 'Pending', 'Running', 'Running', 'Failed'),
    statusFn: fc.boolean(),
  }),
  fc.record({ do: fc.constant('kill-runtime-pod' as const), uid }),
  fc.record({
    do: fc.constant('answer' as const),
    which: fc.nat(),
    how: fc.constantFrom('ok', 'ok', 'ok', 'terminal', 'fail'),
  }),
  fc.record({ do: fc.constant('housekeep' as const), wanted: fc.subarray([...uids]) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 20_000 }) }),
  fc.record({ do: fc.constant('settle' as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Applies a sequence of updates to the workers and checks the invariants after each step. */
class History {
  readonly node = new WorkerFixture();
  readonly #done = new Map<number, number>();
  readonly #graces = new Map<PodUid, number>();
  readonly #statusFns = new Map<PodUid, StatusFn>();
  readonly #terminating = new Set<PodUid>();
  #checked = 0;
  #kills = 0;

  constructor(listens: boolean) {
    this.node.listens = listens;
  }

  async play(step: Step): Promise<void> {
    // A call that ends in this step was started in an earlier step, so all results of the previous
    // step are complete and can be checked here.
    this.#check();
    switch (step.do) {
      case 'update':
        this.#update(step);
        break;
      case 'kill-runtime-pod':
        this.node.workers.updatePod({ updateType: 'kill', runningPod: runtimePodOf(step.uid) });
        break;
      case 'answer':
        this.#answer(step);
        break;
      case 'housekeep':
        this.#housekeep(step.wanted);
        break;
      case 'pass':
        await this.node.clock.advance(step.ms);
        break;
      case 'settle':
        await settle();
    }
    this.#check();
  }

  /**
   * Removes all pods and stops injecting failures; afterwards the workers must hold no pod and no
   * full name.
   */
  async end(): Promise<void> {
    for (let round = 0; round < 50; round++) {
      await settle();
      for (const held of [...this.node.held]) held.resolve('not-terminal');
      await settle();
      this.#check();
      this.#housekeep([]);
    }
    assert.deepEqual(this.node.workers.sizes, { pods: 0, names: 0, loops: 0 });
    assert.equal(this.node.queue.waiting, 0);
    assert.equal(this.node.clock.pendingTimers, 0);
    assert.deepEqual(this.node.refused, []);
    for (let kill = 0; kill < this.#kills; kill++)
      assert.equal(this.#done.get(kill), 1, `kill ${kill} is told of its end exactly once`);
  }

  #update(step: Extract<Step, { do: 'update' }>): void {
    const { deletion, phase, updateType } = step;
    const pod = podOf({
      ...sketchOf(step.uid),
      phase,
      ...(deletion === undefined ? {} : { deletionGraceSeconds: deletion }),
    });
    this.node.workers.updatePod({ updateType, pod, kill: this.#killOptions(step) });
  }

  #killOptions(step: Extract<Step, { do: 'update' }>): KillOptions | undefined {
    if (step.updateType !== 'kill') return undefined;
    const kill = this.#kills++;
    const statusFn: StatusFn | undefined = step.statusFn ? (status) => ({ ...status }) : undefined;
    const before = this.node.workers.queries.isPodKnownTerminated(podOf(sketchOf(step.uid)).metadata.uid);
    if (statusFn !== undefined && !before)
      this.#statusFns.set(podOf(sketchOf(step.uid)).metadata.uid, statusFn);
    const done = () => this.#done.set(kill, (this.#done.get(kill) ?? 0) + 1);
    return { graceOverrideSeconds: step.override, statusFn, done };
  }

  #answer({ which, how }: Extract<Step, { do: 'answer' }>): void {
    const held: HeldSync | undefined = this.node.held[which % Math.max(1, this.node.held.length)];
    if (how === 'fail') held?.reject(new Error('random failure'));
    else held?.resolve(how === 'terminal' ? 'terminal' : 'not-terminal');
  }

  #housekeep(expected: readonly Uid[]): void {
    const before = new Set(this.#terminating);
    const left = this.node.workers.syncKnownPods(expected.map((id) => podOf(sketchOf(id))));
    for (const id of before) if (!left.has(id)) this.#forget(id);
  }

  #forget(id: PodUid): void {
    this.#terminating.delete(id);
    this.#graces.delete(id);
    this.#statusFns.delete(id);
  }

  #check(): void {
    const busy = this.node.held.map((held) => held.uid);
    assert.equal(new Set(busy).size, busy.length, 'never two syncs of one pod at once');
    const holders = this.node.held.filter(
      (held) => held.kind === 'sync' && (held.uid === 'a' || held.uid === 'b'),
    );
    assert.ok(holders.length <= 1, 'never two static pods of one name at once');
    for (; this.#checked < this.node.calls.length; this.#checked++) this.#checkCall(this.#checked);
  }

  #checkCall(index: number): void {
    const call = this.node.calls[index];
    assert.ok(call !== undefined);
    const { queries } = this.node.workers;
    if (call.kind === 'terminating-runtime') return;
    // A pod that only the runtime has is dropped as soon as it has stopped; a pod with the same UID
    // may then start from scratch.
    if (call.kind === 'sync') {
      if (this.#terminating.has(call.uid)) assert.fail('termination is never undone');
      return;
    }
    if (queries.isPodTerminationRequested(call.uid)) this.#terminating.add(call.uid);
    if (call.kind !== 'terminating') return;
    const grace = call.graceSeconds ?? 30;
    assert.ok(grace >= 1 && grace <= (this.#graces.get(call.uid) ?? 60), 'grace never grows');
    this.#graces.set(call.uid, grace);
    if (call.statusFn !== undefined)
      assert.equal(call.statusFn, this.#statusFns.get(call.uid), 'the last wins');
  }
}

for (const listens of [true, false]) {
  const syncers = listens ? 'give up when cancelled' : 'do not listen';
  test(`keeps the invariants of the workers for any order of updates, results and failures, with syncers that ${syncers}`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const history = new History(listens);
        for (const one of steps) await history.play(one);
        await history.end();
      }),
      { numRuns: 400 },
    );
  });
}
