import { KubelingError } from '../../lib/index.ts';
import type { CpuGroups, Level } from './cpu-groups.ts';
import { type CpuSet, sortedCpus } from './cpu-set.ts';

export interface TakingRules {
  /** Threads of as few cores as can be, or of as many. */
  readonly threads: 'packed' | 'across-cores';
  readonly uncoreCaches: 'aligned' | 'ignored';
}

/**
 * That many of the processors that are free, as close together as can be: whole sockets and NUMA nodes, whole cores,
 * then threads, and of each kind first what has the least left. Throws ALLOCATION_FAILED.
 */
export function takeCpus(groups: CpuGroups, free: CpuSet, count: number, rules: TakingRules): CpuSet {
  if (count > free.size) throw cpusShort(count, free);
  const taker = new CpuTaker(groups, free, count);
  if (taker.isDone) return taker.taken;
  for (const level of taker.outerLevels) taker.takeWhole(level);
  if (rules.uncoreCaches === 'aligned') taker.takeUncoreCaches();
  if (rules.threads === 'packed') taker.takeWhole('core');
  taker.takeThreads(rules.threads);
  return taker.taken;
}

export function cpusShort(count: number, free: CpuSet): KubelingError {
  const message = `not enough cpus available to satisfy request: requested=${count}, available=${free.size}`;
  return new KubelingError('ALLOCATION_FAILED', message);
}

/** NUMA nodes in the order they are taken from: those with the least left first. */
export function numaNodesInOrder(groups: CpuGroups, free: CpuSet): readonly number[] {
  return new CpuTaker(groups, free, 0).inOrder('numaNode');
}

class CpuTaker {
  readonly taken = new Set<number>();
  /** NUMA nodes hold sockets on some machines, and sockets hold NUMA nodes on others. */
  readonly outerLevels: readonly [Level, Level];
  readonly #groups: CpuGroups;
  readonly #free: Set<number>;
  #needed: number;

  constructor(groups: CpuGroups, free: CpuSet, count: number) {
    this.#groups = groups;
    this.#free = new Set(free.intersection(groups.all));
    this.#needed = count;
    this.outerLevels =
      groups.count('socket') >= groups.count('numaNode') ? ['numaNode', 'socket'] : ['socket', 'numaNode'];
  }

  get isDone(): boolean {
    return this.#needed === 0;
  }

  /** All of what has anything left: what holds it first, and of equals that with the least left. */
  inOrder(level: Level): readonly number[] {
    const [outer, inner] = this.outerLevels;
    if (level === outer) return this.#sorted(outer, this.#free);
    const holder = level === inner ? outer : level === 'uncoreCache' ? 'numaNode' : inner;
    const ids = this.inOrder(holder).flatMap((id) => this.#sorted(level, this.#freeIn(holder, id)));
    return [...new Set(ids)];
  }

  takeWhole(level: Level): void {
    const isWhole = (id: number) => this.#freeIn(level, id).size === this.#groups.cpusIn(level, id).size;
    for (const id of this.inOrder(level).filter(isWhole)) {
      const cpus = this.#groups.cpusIn(level, id);
      if (!this.isDone && this.#needed >= cpus.size) this.#take(cpus);
    }
  }

  /** Whole ones as long as that many are needed; the rest from the first one that has all of it. */
  takeUncoreCaches(): void {
    for (const id of this.inOrder('uncoreCache')) {
      if (this.#needed >= this.#groups.cpusPerUncoreCache) this.takeWhole('uncoreCache');
      if (this.isDone) return;
      this.#takeFromUncoreCache(id);
      if (this.isDone) return;
    }
  }

  takeThreads(order: TakingRules['threads']): void {
    const level = order === 'packed' ? 'core' : 'socket';
    const cpus = this.inOrder(level).flatMap((id) => sortedCpus(this.#freeIn(level, id)));
    this.#take(cpus.slice(0, this.#needed));
  }

  #takeFromUncoreCache(id: number): void {
    const { cpusPerCore } = this.#groups;
    const cores = this.#groups.idsWith('core', this.#freeIn('uncoreCache', id));
    const enough = cores.slice(0, Math.ceil(this.#needed / cpusPerCore));
    const cpus = sortedCpus(enough.flatMap((core) => [...this.#freeIn('core', core)]));
    // Of the last core one thread may be all that is needed.
    const isOneOver = this.#needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > this.#needed;
    const kept = isOneOver ? cpus.slice(0, -1) : cpus;
    if (kept.length === this.#needed) this.#take(kept);
  }

  #sorted(level: Level, among: CpuSet): readonly number[] {
    const left = new Map(
      this.#groups.idsWith(level, among).map((id) => [id, this.#freeIn(level, id).size] as const),
    );
    return [...left].toSorted(([a, one], [b, other]) => one - other || a - b).map(([id]) => id);
  }

  #freeIn(level: Level, id: number): CpuSet {
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
