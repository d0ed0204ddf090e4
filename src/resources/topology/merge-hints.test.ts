import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { TopologyHint, TopologyHints } from './hint-provider.ts';
import { type MergeRules, mergeHints } from './merge-hints.ts';

const hint = (numaNodes: readonly number[] | undefined, preferred: boolean): TopologyHint => ({
  numaNodes,
  preferred,
});
const hints = (resources: Readonly<Record<string, readonly TopologyHint[] | undefined>>): TopologyHints =>
  new Map(Object.entries(resources));
const two: MergeRules = { policy: 'best-effort', numaNodes: [0, 1] };
const merged = (provided: readonly (TopologyHints | undefined)[], rules: Partial<MergeRules> = {}) => {
  const { hint: best, admit } = mergeHints(provided, { ...two, ...rules });
  return [best.numaNodes, best.preferred, admit];
};

describe('mergeHints', () => {
  it('mergeHints allows any NUMA node without hints', () => {
    assert.deepEqual(merged([undefined]), [[0, 1], true, true]);
    assert.deepEqual(merged([undefined, hints({ gpu: undefined })]), [[0, 1], true, true]);
    assert.deepEqual(merged([undefined], { policy: 'single-numa-node' }), [undefined, true, true]);
  });

  it('mergeHints prefers the lowest NUMA nodes that all providers prefer', () => {
    const each = [hint([0], true), hint([1], true), hint([0, 1], false)];
    assert.deepEqual(merged([hints({ cpu: each })]), [[0], true, true]);
    assert.deepEqual(merged([hints({ cpu: each }), hints({ gpu: [hint([1], true)] })]), [[1], true, true]);
  });

  it('mergeHints returns a hint that is not preferred if the NUMA node sets preferred by the providers differ', () => {
    const wide = hints({ cpu: [hint([0, 1], true)] });
    const narrow = hints({ gpu: [hint([0], true), hint([1], true)] });
    assert.deepEqual(merged([wide, narrow]), [[0], false, true]);
    assert.deepEqual(merged([wide, narrow], { policy: 'restricted' }), [[0], false, false]);
  });

  it('mergeHints returns a hint that is not preferred if a provider has an empty list of hints', () => {
    const none = [hints({ cpu: [] }), hints({ gpu: [hint([0], true)] })];
    assert.deepEqual(merged(none), [[0], false, true]);
    assert.deepEqual(merged(none, { policy: 'restricted' })[2], false);
    assert.deepEqual(merged(none, { policy: 'single-numa-node' }), [undefined, false, false]);
  });

  it('mergeHints returns all NUMA nodes as a hint that is not preferred if the providers have no NUMA nodes in common', () => {
    const apart = [hints({ cpu: [hint([0], true)] }), hints({ gpu: [hint([1], true)] })];
    assert.deepEqual(merged(apart), [[0, 1], false, true]);
    assert.equal(merged(apart, { policy: 'restricted' })[2], false);
  });

  it('admits only resources of one NUMA node with single-numa-node', () => {
    const rules = { policy: 'single-numa-node' } as const;
    assert.deepEqual(merged([hints({ cpu: [hint([0, 1], true)] })], rules), [undefined, false, false]);
    assert.deepEqual(merged([hints({ cpu: [hint([1], true)] })], rules), [[1], true, true]);
    assert.deepEqual(merged([hints({ cpu: [hint([1], false)] })], rules), [undefined, false, false]);
  });

  it('with prefer-closest-numa-nodes, takes the closest of several NUMA node sets of equal size', () => {
    const numaNodes = [0, 1, 2, 3];
    const pairs = [hint([0, 1], true), hint([0, 2], true), hint([2, 3], true)];
    const distance = (from: number, to: number) => (from === to ? 10 : from + to === 5 ? 11 : 20);
    assert.deepEqual(merged([hints({ cpu: pairs })], { numaNodes })[0], [0, 1]);
    assert.deepEqual(merged([hints({ cpu: pairs })], { numaNodes, distance })[0], [2, 3]);
  });
});

/** Finds the best result by comparing all combinations of hints. */
function bruteForce(provided: readonly (TopologyHints | undefined)[], rules: MergeRules) {
  const lists = provided.flatMap((given) =>
    given === undefined || given.size === 0
      ? [[hint(undefined, true)]]
      : [...given.values()].map((ways) =>
          ways === undefined ? [hint(undefined, true)] : ways.length === 0 ? [hint(undefined, false)] : ways,
        ),
  );
  const isSingle = (way: TopologyHint) => way.preferred && (way.numaNodes?.length ?? 1) === 1;
  const usable = rules.policy === 'single-numa-node' ? lists.map((ways) => ways.filter(isSingle)) : lists;
  const expected = Math.max(
    0,
    ...usable.map((ways) => {
      const widths = ways.flatMap(({ numaNodes }) => numaNodes?.length ?? []);
      return widths.length === 0 ? 0 : Math.min(...widths);
    }),
  );
  const found = combinations(usable).map((ways) => {
    const named = ways.flatMap(({ numaNodes }) => (numaNodes === undefined ? [] : [numaNodes]));
    const common = rules.numaNodes.filter((id) => named.every((nodes) => nodes.includes(id)));
    const same = named.every((nodes) => nodes.join() === named[0]?.join());
    return { common, preferred: same && ways.every(({ preferred }) => preferred) };
  });
  const value = (nodes: readonly number[]) => nodes.reduce((sum, id) => sum + 2 ** id, 0);
  const far = (nodes: readonly number[]) =>
    rules.distance === undefined || rules.policy === 'single-numa-node'
      ? 0
      : nodes
          .flatMap((from) => nodes.map((to) => rules.distance?.(from, to) ?? 0))
          .reduce((a, b) => a + b, 0) /
        nodes.length ** 2;
  const rank = ({ common, preferred }: (typeof found)[number]) => [
    preferred ? 0 : 1,
    !preferred && common.length > expected ? 1 : 0,
    preferred || common.length > expected ? common.length : -common.length,
    far(common),
    value(common),
  ];
  const [best] = found
    .filter(({ common }) => common.length > 0)
    .toSorted((each, other) => {
      const [a, b] = [rank(each), rank(other)];
      const at = a.findIndex((part, place) => part !== b[place]);
      return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
    });
  const { common, preferred } = best ?? { common: rules.numaNodes, preferred: false };
  const isAll = rules.policy === 'single-numa-node' && common.length === rules.numaNodes.length;
  return {
    hint: { numaNodes: isAll ? undefined : common, preferred },
    admit: rules.policy === 'best-effort' || preferred,
  };
}

function combinations(lists: readonly (readonly TopologyHint[])[]): readonly (readonly TopologyHint[])[] {
  return lists.reduce<readonly (readonly TopologyHint[])[]>(
    (before, ways) => before.flatMap((chosen) => ways.map((way) => [...chosen, way])),
    [[]],
  );
}

describe('mergeHints, compared with an exhaustive search', () => {
  const numaNodes = [0, 1, 2, 5];
  const way = fc.record({
    numaNodes: fc.oneof(
      { weight: 8, arbitrary: fc.subarray(numaNodes, { minLength: 1 }) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
    preferred: fc.boolean(),
  });
  const resource = fc.oneof(
    { weight: 6, arbitrary: fc.array(way, { maxLength: 6 }) },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
  const provider = fc.oneof(
    fc.constant(undefined),
    fc.dictionary(fc.constantFrom('cpu', 'memory', 'gpu'), resource).map((given) => hints(given)),
  );
  const distances = fc.array(fc.integer({ min: 10, max: 14 }), { minLength: 36, maxLength: 36 });

  it('mergeHints finds the same result as an exhaustive search of all combinations', () => {
    fc.assert(
      fc.property(
        fc.array(provider, { maxLength: 3 }),
        fc.constantFrom('best-effort', 'restricted', 'single-numa-node'),
        fc.option(distances),
        (provided, policy, far) => {
          const distance = far === null ? undefined : (from: number, to: number) => far[from * 6 + to] ?? 0;
          const rules = { policy, numaNodes, distance } as const;
          assert.deepEqual(mergeHints(provided, rules), bruteForce(provided, rules));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('mergeHints merges hundreds of hints of four resources quickly', () => {
    const eight = [0, 1, 2, 3, 4, 5, 6, 7];
    const all = Array.from({ length: 255 }, (_, place) =>
      hint(
        eight.filter((id) => ((place + 1) & (1 << id)) !== 0),
        false,
      ),
    );
    const provided = [hints({ cpu: all }), hints({ memory: all, pages: all }), hints({ gpu: all })];
    const before = performance.now();
    mergeHints(provided, { policy: 'best-effort', numaNodes: eight });
    assert.ok(performance.now() - before < 1_000);
  });
});
