import { KubelingError } from '../../lib/index.ts';
import { choices } from '../topology/hint-provider.ts';
import { type CpuSet, sortedCpus } from './cpu-set.ts';
import type { CpuTopology, TopologyLevel } from './cpu-topology.ts';

export interface TakeCpusOptions {
  /** Whether CPUs are taken from the fewest cores (`packed`) or from the most (`across-cores`). */
  readonly threads: 'packed' | 'across-cores';
  readonly uncoreCaches: 'aligned' | 'ignored';
}

/**
 * Takes free CPUs that are as close together as possible: complete sockets and NUMA nodes, then
 * complete cores, then threads; of several equal groups, the one with the fewest free CPUs is used
 * first. Throws ALLOCATION_FAILED.
 */
export function takeCpus(groups: CpuTopology, free: CpuSet, count: number, rules: TakeCpusOptions): CpuSet {
  if (count > free.size) throw notEnoughCpus(count, free);
  const taker = new CpuTaker(groups, free, count);
  if (taker.isDone) return taker.taken;
  for (const level of taker.outerLevels) taker.takeWhole(level);
  if (rules.uncoreCaches === 'aligned') taker.takeUncoreCaches();
  if (rules.threads === 'packed') taker.takeWhole('core');
  taker.takeThreads(rules.threads);
  return taker.taken;
}

function notEnoughCpus(count: number, free: CpuSet): KubelingError {
  const message = `not enough cpus available to satisfy request: requested=${count}, available=${free.size}`;
  return new KubelingError('ALLOCATION_FAILED', message);
}

/**
 * Returns the NUMA nodes in the order in which their CPUs are taken: the fewest free CPUs first.
 */
function numaNodesInOrder(groups: CpuTopology, free: CpuSet): readonly number[] {
  return new CpuTaker(groups, free, 0).inOrder('numaNode');
}

class CpuTaker {
  readonly taken = new Set<number>();
  /** NUMA nodes contain sockets on some machines, and sockets contain NUMA nodes on others. */
  readonly outerLevels: readonly [TopologyLevel, TopologyLevel];
  readonly #groups: CpuTopology;
  readonly #free: Set<number>;
  #needed: number;

  constructor(groups: CpuTopology, free: CpuSet, count: number) {
    this.#groups = groups;
    this.#free = new Set(free.intersection(groups.all));
    this.#needed = count;
    this.outerLevels =
      groups.count('socket') >= groups.count('numaNode') ? ['numaNode', 'socket'] : ['socket', 'numaNode'];
  }

  get isDone(): boolean {
    return this.#needed === 0;
  }

  /**
   * Returns the groups of this level that have free CPUs. They are sorted by the outer group to
   * which they belong, then by the number of free CPUs; the fewest free CPUs come first.
   */
  inOrder(level: TopologyLevel): readonly number[] {
    const [outer, inner] = this.outerLevels;
    if (level === outer) return this.#sorted(outer, this.#free);
    const holder = level === inner ? outer : level === 'uncoreCache' ? 'numaNode' : inner;
    const ids = this.inOrder(holder).flatMap((id) => this.#sorted(level, this.#freeIn(holder, id)));
    return [...new Set(ids)];
  }

  takeWhole(level: TopologyLevel): void {
    const isComplete = (id: number) => this.#freeIn(level, id).size === this.#groups.cpusIn(level, id).size;
    for (const id of this.inOrder(level).filter(isComplete)) {
      const cpus = this.#groups.cpusIn(level, id);
      if (!this.isDone && this.#needed >= cpus.size) this.#take(cpus);
    }
  }

  /**
   * Takes complete uncore caches while at least as many CPUs are needed as a cache has, and the
   * remaining CPUs from the first cache with enough free CPUs.
   */
  takeUncoreCaches(): void {
    for (const id of this.inOrder('uncoreCache')) {
      if (this.#needed >= this.#groups.cpusPerUncoreCache) this.takeWhole('uncoreCache');
      if (this.isDone) return;
      this.#takeFromUncoreCache(id);
      if (this.isDone) return;
    }
  }

  takeThreads(order: TakeCpusOptions['threads']): void {
    const level = order === 'packed' ? 'core' : 'socket';
    const cpus = this.inOrder(level).flatMap((id) => sortedCpus(this.#freeIn(level, id)));
    this.#take(cpus.slice(0, this.#needed));
  }

  #takeFromUncoreCache(id: number): void {
    const { cpusPerCore } = this.#groups;
    const cores = this.#groups.idsWith('core', this.#freeIn('uncoreCache', id));
    const enough = cores.slice(0, Math.ceil(this.#needed / cpusPerCore));
    const cpus = sortedCpus(enough.flatMap((core) => [...this.#freeIn('core', core)]));
    // With an odd number of CPUs, only one thread of the last core is needed.
    const isOneOver = this.#needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > this.#needed;
    const kept = isOneOver ? cpus.slice(0, -1) : cpus;
    if (kept.length === this.#needed) this.#take(kept);
  }

  #sorted(level: TopologyLevel, among: CpuSet): readonly number[] {
    const left = new Map(
      this.#groups.idsWith(level, among).map((id) => [id, this.#freeIn(level, id).size] as const),
    );
    return [...left].toSorted(([a, one], [b, other]) => one - other || a - b).map(([id]) => id);
  }

  #freeIn(level: TopologyLevel, id: number): CpuSet {
    return this.#groups.cpusIn(level, id).intersection(this.#free);
  }

  #take(cpus: Iterable<number>): void {
    for (const cpu of cpus) {
      this.#free.delete(cpu);
      this.taken.add(cpu);
      this.#needed--;
    }
  }
}

/**
 * The number of CPUs to take from each NUMA node, in this order; a NUMA node may occur more than
 * once.
 */
type Shares = readonly (readonly [numaNode: number, count: number])[];

/**
 * Takes free CPUs in equal numbers from the fewest possible NUMA nodes, in units of complete cores
 * if required. Falls back to takeCpus if that is impossible. Throws ALLOCATION_FAILED.
 */
export function distributeCpus(
  groups: CpuTopology,
  free: CpuSet,
  count: number,
  unit: number,
  rules: TakeCpusOptions,
): CpuSet {
  if (count % unit !== 0) return takeCpus(groups, free, count, rules);
  if (count > free.size) throw notEnoughCpus(count, free);
  if (count === 0) return new Set();
  const shares = bestShares(new Distribution(groups, free, count, unit));
  if (shares === undefined) return takeCpus(groups, free, count, rules);
  return shares.reduce((taken: CpuSet, [numaNode, amount]) => {
    const left = groups.cpusIn('numaNode', numaNode).intersection(free).difference(taken);
    return taken.union(takeCpus(groups, left, amount, rules));
  }, new Set<number>());
}

/**
 * Among the smallest sets of NUMA nodes, chooses the one that leaves the most balanced free CPUs.
 */
function bestShares(distribution: Distribution): Shares | undefined {
  const { least, most } = distribution.range;
  for (let size = least; size <= most; size++) {
    let best: Rated | undefined;
    for (const chosen of choices(distribution.numaNodes, size)) {
      const rated = distribution.rate(chosen);
      if (rated !== undefined && (best === undefined || rated.unevenness < best.unevenness)) best = rated;
      if (best?.unevenness === 0) break;
    }
    if (best !== undefined) return best.shares;
  }
  return undefined;
}

interface Rated {
  readonly shares: Shares;
  readonly unevenness: number;
}

class Distribution {
  readonly numaNodes: readonly number[];
  readonly range: { readonly least: number; readonly most: number };
  readonly #left: ReadonlyMap<number, number>;
  readonly #count: number;
  readonly #unit: number;

  constructor(groups: CpuTopology, free: CpuSet, count: number, unit: number) {
    this.numaNodes = numaNodesInOrder(groups, free);
    this.#left = new Map(
      this.numaNodes.map((id) => [id, groups.cpusIn('numaNode', id).intersection(free).size]),
    );
    this.#count = count;
    this.#unit = unit;
    const units = Math.ceil(count / unit);
    const unitsPerNode = Math.ceil(Math.ceil(groups.all.size / unit) / groups.count('numaNode'));
    this.range = {
      least: Math.ceil(units / unitsPerNode),
      most: Math.min(units, this.numaNodes.length),
    };
  }

  /**
   * Rates a set of NUMA nodes by the balance of the CPUs that would stay free; undefined if the
   * nodes cannot provide equal numbers of CPUs, except for the remainder.
   */
  rate(chosen: readonly number[]): Rated | undefined {
    const unit = this.#unit;
    const whole = chosen.reduce((sum, id) => sum + Math.floor(this.#leftOn(id) / unit) * unit, 0);
    if (whole < this.#count) return undefined;
    const each = Math.floor(this.#count / chosen.length / unit) * unit;
    if (chosen.some((id) => this.#leftOn(id) < each)) return undefined;
    const shares: Shares = chosen.map((id) => [id, each]);
    const rest = this.#count - each * chosen.length;
    return rest === 0 ? this.#rated(shares) : this.#withRest(shares, rest);
  }

  /**
   * The remainder is distributed to as many NUMA nodes as possible, so that the free CPUs stay
   * balanced.
   */
  #withRest(shares: Shares, rest: number): Rated | undefined {
    const able = shares.flatMap(([id, each]) => (this.#leftOn(id) - each >= this.#unit ? [id] : []));
    let best: Rated | undefined;
    for (let size = able.length; size >= 1; size--) {
      for (const takers of choices(able, size)) {
        const complete = this.#handOut(shares, takers, rest);
        const rated = complete && this.#rated(complete);
        if (rated !== undefined && (best === undefined || rated.unevenness < best.unevenness)) best = rated;
      }
    }
    return best;
  }

  #handOut(shares: Shares, takers: readonly number[], rest: number): Shares | undefined {
    const unit = this.#unit;
    const complete = [...shares];
    const left = new Map(shares.map(([id, each]) => [id, this.#leftOn(id) - each]));
    for (let open = rest; open > 0; ) {
      const able = takers.filter((id) => (left.get(id) ?? 0) >= unit).slice(0, Math.ceil(open / unit));
      if (able.length === 0) return undefined;
      for (const id of able) {
        left.set(id, (left.get(id) ?? 0) - unit);
        complete.push([id, unit]);
      }
      open -= able.length * unit;
    }
    return complete;
  }

  #rated(shares: Shares): Rated {
    const after = new Map(this.#left);
    for (const [id, count] of shares) after.set(id, (after.get(id) ?? 0) - count);
    return { shares, unevenness: standardDeviation([...after.values()]) };
  }

  #leftOn(id: number): number {
    return this.#left.get(id) ?? 0;
  }
}

/** Rounds the standard deviation to three digits, so that small differences are ignored. */
function standardDeviation(numbers: readonly number[]): number {
  const mean = rounded(numbers.reduce((sum, number) => sum + number, 0) / numbers.length);
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  return rounded(Math.sqrt(squares / numbers.length));
}

function rounded(number: number): number {
  return Math.round(number * 1_000) / 1_000;
}
