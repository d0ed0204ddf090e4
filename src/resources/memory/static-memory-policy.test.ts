import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import type { RuntimePlacement } from '../cgroups/cgroup-values.ts';
import { type TopologyHint, unaligned } from '../topology/hint-provider.ts';
import { encodeMemoryCheckpoint, restoreMemoryState } from './memory-checkpoint.ts';
import { type MemoryState, withoutBlocks } from './memory-state.ts';
import { initialMachineMemory, StaticMemoryPolicy } from './static-memory-policy.ts';

const mib = 2 ** 20;
const nodes = [0, 1].map((id) => ({
  id,
  memoryBytes: 1_124 * mib,
  hugePages: [{ type: 'hugepages-2Mi', bytes: 64 * mib }],
}));
/**
 * A test machine with 1000 MiB of allocatable memory on the first NUMA node and 1060 MiB on the
 * second.
 */
const machine = initialMachineMemory(nodes, (id, type) => (id === 0 && type === 'memory' ? 60 * mib : 0));
const policy = new StaticMemoryPolicy(machine);

function asking(name: string, memory: number, more: Readonly<Record<string, string>> = {}): Pod {
  const list = { cpu: '1', memory: `${memory}Mi`, ...more };
  const containers = [{ name: 'main', resources: { requests: list, limits: list } }];
  return aPod({ metadata: { uid: podUid(name), name }, spec: { containers } });
}

function given(state: MemoryState, pod: Pod, affinity: TopologyHint = unaligned): MemoryState {
  return pod.spec.containers.reduce((before, one) => policy.allocate(before, pod, one, affinity), state);
}

const freeOf = (state: MemoryState) =>
  [...state.machine.values()].map(({ memoryMap }) => (memoryMap.get('memory')?.free ?? 0) / mib);

describe('the static memory policy', () => {
  it('assigns memory of one NUMA node while one node has enough', () => {
    const after = given(policy.initialState, asking('one', 600));
    assert.deepEqual(freeOf(after), [400, 1_060]);
    const both = given(after, asking('two', 600));
    assert.deepEqual(freeOf(both), [400, 460]);
    assert.deepEqual(both.assignments.get(podUid('two'))?.get('main'), [
      { numaAffinity: [1], type: 'memory', size: 600 * mib },
    ]);
  });

  it('assigns memory of several NUMA nodes if one node could never be sufficient', () => {
    const after = given(policy.initialState, asking('wide', 1_500));
    assert.deepEqual(freeOf(after), [0, 560]);
    assert.deepEqual(
      [...after.machine.values()].map(({ cells }) => cells),
      [
        [0, 1],
        [0, 1],
      ],
    );
    const small = given(after, asking('small', 10)).assignments.get(podUid('small'))?.get('main');
    assert.deepEqual(small?.[0]?.numaAffinity, [0, 1], 'none of them allocates alone any more');
    assert.throws(() => given(after, asking('large', 600)), /no NUMA nodes with enough memory is available/);
  });

  it('never uses a NUMA node both alone and in a group', () => {
    const after = given(policy.initialState, asking('one', 100));
    assert.throws(() => given(after, asking('wide', 1_500)), { code: 'ALLOCATION_FAILED' });
  });

  it('assigns no memory to pods that are not Guaranteed', () => {
    const pod = aPod();
    const before = policy.initialState;
    assert.equal(given(before, pod), before);
    assert.equal(policy.podHints(policy.initialState, pod), undefined);
  });

  it('allocates no new memory for init containers that have exited', () => {
    const whole = asking('one', 100);
    const [main = { name: 'main' }] = whole.spec.containers;
    const init = ['first', 'second'].map((name) => ({ ...main, name }));
    const pod = { ...whole, spec: { ...whole.spec, initContainers: init } };
    const all = [...init, ...pod.spec.containers];
    const admitted = (state: MemoryState) =>
      all.reduce((before, container) => policy.allocate(before, pod, container, unaligned), state);
    let state = admitted(policy.initialState);
    assert.deepEqual([...(state.assignments.get(podUid('one'))?.keys() ?? [])], ['first', 'second', 'main']);
    for (const { name } of init) {
      state = withoutBlocks(state, podUid('one'), name);
      assert.equal(admitted(state), state, `${name} has exited and the pod is synced again`);
      assert.equal(policy.hints(state, pod, { ...main, name: 'first' }), undefined);
    }
    assert.deepEqual(freeOf(state), [900, 1_060]);
  });

  it('assigns huge pages separately from other memory', () => {
    const after = given(policy.initialState, asking('pages', 100, { 'hugepages-2Mi': '64Mi' }));
    assert.equal(after.machine.get(0)?.numberOfAssignments, 2);
    const hints = policy.podHints(after, asking('more', 100, { 'hugepages-2Mi': '64Mi' }));
    assert.deepEqual(hints?.get('hugepages-2Mi'), [{ numaNodes: [1], preferred: true }]);
  });

  it('for any sequence of pods, never overcommits a NUMA node and releases all memory in the end', () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      mib: fc.integer({ min: 1, max: 1_800 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        let state = policy.initialState;
        for (const { name, mib: size } of steps) {
          const uid = podUid(name);
          if (state.assignments.has(uid)) state = withoutBlocks(state, uid, 'main');
          else {
            try {
              state = given(state, asking(name, size));
            } catch (error) {
              assert.equal((error as { code?: string }).code, 'ALLOCATION_FAILED');
            }
          }
          for (const { memoryMap } of state.machine.values())
            for (const { free, reserved, allocatable } of memoryMap.values())
              assert.ok(free >= 0 && free + reserved === allocatable);
          assert.equal(policy.problemOf(state), undefined);
        }
        for (const uid of state.assignments.keys()) state = withoutBlocks(state, uid, 'main');
        assert.deepEqual(state, policy.initialState);
      }),
      { numRuns: 300 },
    );
  });
});

describe('restored memory assignments', () => {
  const placed = (uid: string, mems: readonly number[], size: number): RuntimePlacement => ({
    uid: podUid(uid),
    container: 'main',
    cpus: new Set(),
    cpuShares: 2,
    cpuQuotaUs: 0,
    cpuPeriodUs: 0,
    mems: new Set(mems),
    memory: new Map([['memory', size * mib]]),
  });
  const one = given(policy.initialState, asking('one', 600));
  const text = encodeMemoryCheckpoint({ policyName: 'Static', state: one });
  const restored = (noted: string | undefined, runtime: readonly RuntimePlacement[] = []) =>
    restoreMemoryState(noted, policy, async () => runtime);

  it('uses the memory assignments of the checkpoint', async () => {
    assert.deepEqual(await restored(text), { state: one });
    assert.deepEqual(await restored(undefined), { state: policy.initialState });
  });

  it('resets memory assignments of another policy, and derives them from the runtime if the checkpoint is unreadable', async () => {
    const empty = { machine: new Map(), assignments: new Map() };
    const none = encodeMemoryCheckpoint({ policyName: 'None', state: empty });
    assert.deepEqual((await restored(none)).state, policy.initialState);
    const runtime = [placed('one', [0], 600), placed('other', [], 100), placed('far', [7], 100)];
    const found = await restored(text.slice(0, -3), runtime);
    assert.deepEqual(found.state, one);
    assert.notEqual(found.problem, undefined);
  });

  it('keeps restored memory assignments as far as they fit on the machine', async () => {
    const small = new StaticMemoryPolicy(
      initialMachineMemory(nodes, (_, type) => (type === 'memory' ? 600 * mib : 0)),
    );
    const { state, problem } = await restoreMemoryState(text, small, async () => [placed('one', [0], 600)]);
    assert.deepEqual(state, small.initialState);
    assert.match(problem ?? '', /different from the real one/);
  });
});
