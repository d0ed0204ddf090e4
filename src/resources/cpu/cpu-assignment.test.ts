import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { CpuLocation } from '../topology/machine-topology.ts';
import { distributeCpus, type TakeCpusOptions, takeCpus } from './cpu-assignment.ts';
import { type CpuSet, formatCpuSet } from './cpu-set.ts';
import { CpuTopology, type TopologyLevel } from './cpu-topology.ts';

const packed: TakeCpusOptions = { threads: 'packed', uncoreCaches: 'ignored' };

interface Shape {
  readonly sockets: number;
  readonly nodesPerSocket: number;
  readonly coresPerNode: number;
  readonly threads: number;
}

/**
 * A machine on which the CPU numbers of the two threads of a core are far apart, as on most
 * machines.
 */
function machine({ sockets, nodesPerSocket, coresPerNode, threads }: Shape): CpuTopology {
  const cores = sockets * nodesPerSocket * coresPerNode;
  const places = Array.from({ length: cores * threads }, (_, cpu): [number, CpuLocation] => {
    const core = cpu % cores;
    const numaNode = Math.floor(core / coresPerNode);
    const uncoreCache = Math.floor(core / Math.ceil(coresPerNode / 2));
    return [cpu, { core, numaNode, socket: Math.floor(numaNode / nodesPerSocket), uncoreCache }];
  });
  return new CpuTopology({ cpus: new Map(places) });
}

const smt = machine({ sockets: 2, nodesPerSocket: 1, coresPerNode: 4, threads: 2 });
const taken = (groups: CpuTopology, free: CpuSet, count: number, rules = packed) =>
  formatCpuSet(takeCpus(groups, free, count, rules));
const without = (groups: CpuTopology, ...cpus: readonly number[]) => groups.all.difference(new Set(cpus));

describe('takeCpus: CPUs that are close together', () => {
  it('takeCpus takes both threads of a core, then those of the next core', () => {
    assert.equal(taken(smt, smt.all, 2), '0,8');
    assert.equal(taken(smt, smt.all, 4), '0-1,8-9');
  });

  it('takeCpus takes a complete socket for a request of that many CPUs', () => {
    assert.equal(taken(smt, without(smt, 0), 8), '4-7,12-15');
  });

  it('takeCpus takes the free threads of partly used cores first', () => {
    assert.equal(taken(smt, without(smt, 4), 1), '12');
    assert.equal(taken(smt, without(smt, 4), 2), '5,13');
  });

  it('takeCpus spreads over cores with distribute-cpus-across-cores', () => {
    assert.equal(taken(smt, smt.all, 4, { threads: 'across-cores', uncoreCaches: 'ignored' }), '0-3');
  });

  it('takeCpus stays within one uncore cache with prefer-align-cpus-by-uncorecache', () => {
    const split = machine({ sockets: 1, nodesPerSocket: 1, coresPerNode: 8, threads: 2 });
    const aligned: TakeCpusOptions = { threads: 'packed', uncoreCaches: 'aligned' };
    assert.equal(taken(split, without(split, 0, 8), 8, aligned), '4-7,12-15');
    assert.equal(taken(split, without(split, 0, 8), 4, aligned), '1-2,9-10');
  });

  it('takeCpus reports the available CPUs if there are too few', () => {
    assert.throws(() => takeCpus(smt, new Set([1, 2]), 3, packed), {
      code: 'ALLOCATION_FAILED',
      message: 'not enough cpus available to satisfy request: requested=3, available=2',
    });
  });
});

describe('distributeCpus: CPUs in equal numbers from NUMA nodes', () => {
  const four = machine({ sockets: 2, nodesPerSocket: 2, coresPerNode: 4, threads: 2 });
  const perNode = (cpus: CpuSet) =>
    four.ids('numaNode').map((id) => cpus.intersection(four.cpusIn('numaNode', id)).size);

  it('distributeCpus takes the same number of CPUs from the fewest possible NUMA nodes', () => {
    assert.deepEqual(perNode(distributeCpus(four, four.all, 12, 1, packed)).toSorted(), [0, 0, 6, 6]);
    assert.deepEqual(perNode(distributeCpus(four, four.all, 8, 1, packed)), [8, 0, 0, 0]);
  });

  it('distributeCpus takes the remainder from the NUMA node with the most free CPUs', () => {
    const counts = perNode(distributeCpus(four, without(four, 0), 15, 1, packed));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      15,
    );
    assert.deepEqual(counts.filter((count) => count > 0).toSorted(), [7, 8]);
  });

  it('distributeCpus takes complete cores with full-pcpus-only', () => {
    const cpus = distributeCpus(four, four.all, 18, 2, packed);
    assert.equal(four.idsWith('core', cpus).length, 9);
  });
});

describe('takeCpus with random free CPUs', () => {
  const shape = fc.record({
    sockets: fc.integer({ min: 1, max: 2 }),
    nodesPerSocket: fc.integer({ min: 1, max: 4 }),
    coresPerNode: fc.integer({ min: 1, max: 4 }),
    threads: fc.integer({ min: 1, max: 2 }),
  });
  const taking = fc.record({
    shape,
    busy: fc.array(fc.nat({ max: 63 }), { maxLength: 24 }),
    count: fc.nat({ max: 40 }),
    rules: fc.record({
      threads: fc.constantFrom('packed', 'across-cores'),
      uncoreCaches: fc.constantFrom('aligned', 'ignored'),
    }),
    spread: fc.boolean(),
  });

  it('takeCpus takes exactly the requested number of distinct free CPUs', () => {
    fc.assert(
      fc.property(taking, ({ shape, busy, count, rules, spread }) => {
        const groups = machine(shape);
        const free = groups.all.difference(new Set(busy));
        const take = () =>
          spread ? distributeCpus(groups, free, count, 1, rules) : takeCpus(groups, free, count, rules);
        if (count > free.size) return assert.throws(take, { code: 'ALLOCATION_FAILED' });
        const cpus = take();
        assert.equal(cpus.size, count);
        assert.ok(cpus.isSubsetOf(free));
      }),
      { numRuns: 1_000 },
    );
  });

  it('takeCpus uses the minimum number of cores and sockets', () => {
    fc.assert(
      fc.property(taking, ({ shape, busy, count }) => {
        const groups = machine(shape);
        // Each core is either completely free or completely used, as with full-pcpus-only.
        const busyCores = groups.idsWith('core', new Set(busy));
        const free = groups.all.difference(groups.cpusInAll('core', busyCores));
        const expected = count * shape.threads;
        if (expected > free.size || expected === 0) return;
        const cpus = takeCpus(groups, free, expected, packed);
        assert.equal(groups.idsWith('core', cpus).length, count, 'whole cores');
        const left = (level: TopologyLevel) =>
          groups.ids(level).map((id) => groups.cpusIn(level, id).intersection(free).size);
        const [outer, inner]: readonly [TopologyLevel, TopologyLevel] =
          groups.count('socket') >= groups.count('numaNode')
            ? ['numaNode', 'socket']
            : ['socket', 'numaNode'];
        // A complete inner group (socket or NUMA node) may be taken from any outer group; otherwise
        // the outer group with the fewest free CPUs is used first.
        const isWholeTaken = left(inner).some(
          (size) => size <= expected && size === groups.all.size / groups.count(inner),
        );
        const fewest = Math.min(...left(outer).filter((size) => size > 0));
        if (!isWholeTaken && fewest >= expected)
          assert.equal(groups.idsWith(outer, cpus).length, 1, 'packed');
      }),
      { numRuns: 1_000 },
    );
  });
});
