import type { CpuLocation, MachineTopology } from '../topology/machine-topology.ts';
import { type CpuSet, noCpus } from './cpu-set.ts';

/** The levels of the CPU topology. */
export type TopologyLevel = keyof CpuLocation;

const levels: readonly TopologyLevel[] = ['numaNode', 'socket', 'core', 'uncoreCache'];

/** The CPU topology of a machine: its CPUs by NUMA node, socket, core and uncore cache. */
export class CpuTopology {
  readonly all: CpuSet;
  readonly #places: ReadonlyMap<number, CpuLocation>;
  readonly #groups: Readonly<Record<TopologyLevel, ReadonlyMap<number, CpuSet>>>;

  constructor({ cpus }: Pick<MachineTopology, 'cpus'>) {
    this.#places = cpus;
    this.all = new Set(cpus.keys());
    this.#groups = Object.fromEntries(levels.map((level) => [level, groupsOf(cpus, level)])) as Record<
      TopologyLevel,
      ReadonlyMap<number, CpuSet>
    >;
  }

  count(level: TopologyLevel): number {
    return this.#groups[level].size;
  }

  /** Returns all IDs of the given level, such as all sockets, ascending. */
  ids(level: TopologyLevel): readonly number[] {
    return [...this.#groups[level].keys()];
  }

  cpusIn(level: TopologyLevel, id: number): CpuSet {
    return this.#groups[level].get(id) ?? noCpus;
  }

  idOf(level: TopologyLevel, cpu: number): number | undefined {
    return this.#places.get(cpu)?.[level];
  }

  /** Returns the IDs of the groups of the given level that contain any of these CPUs, ascending. */
  idsWith(level: TopologyLevel, cpus: Iterable<number>): readonly number[] {
    const ids = new Set<number>();
    for (const cpu of cpus) {
      const id = this.idOf(level, cpu);
      if (id !== undefined) ids.add(id);
    }
    return [...ids].toSorted((one, other) => one - other);
  }

  cpusInAll(level: TopologyLevel, ids: readonly number[]): CpuSet {
    return new Set(ids.flatMap((id) => [...this.cpusIn(level, id)]));
  }

  /**
   * Returns the average number of CPUs per core, because cores of different kinds have different
   * numbers of CPUs.
   */
  get cpusPerCore(): number {
    return Math.floor(this.all.size / this.count('core'));
  }

  get cpusPerUncoreCache(): number {
    return Math.floor(this.all.size / this.count('uncoreCache'));
  }
}

function groupsOf(cpus: ReadonlyMap<number, CpuLocation>, level: TopologyLevel): ReadonlyMap<number, CpuSet> {
  const groups = Map.groupBy(cpus, ([, place]) => place[level]);
  const sorted = [...groups].toSorted(([one], [other]) => one - other);
  return new Map(sorted.map(([id, members]) => [id, new Set(members.map(([cpu]) => cpu))]));
}
