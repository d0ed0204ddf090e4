import type { TopologyHint, TopologyHints } from '../topology/index.ts';
import { type Allotment, type Allotments, idsOf, noNumaNode } from './allotments.ts';
import type { Device } from './device.ts';
import type { DeviceTable } from './device-table.ts';

/** What of a resource somebody has already who asks for it. */
export interface EarlierShare {
  readonly had: Pick<Allotment, 'devices'> | undefined;
  /** Devices of his own that he may use again. */
  readonly reusable: ReadonlySet<string>;
}

/** From where on the machine devices could come. */
export class DeviceHints {
  readonly #table: DeviceTable;
  readonly #allotments: Allotments;
  readonly #numaNodes: readonly number[] | undefined;

  constructor(table: DeviceTable, allotments: Allotments, numaNodes: readonly number[] | undefined) {
    this.#table = table;
    this.#allotments = allotments;
    this.#numaNodes = numaNodes;
  }

  /** Undefined for who asks for nothing. */
  of(
    requests: readonly (readonly [string, number])[],
    earlier: (resource: string) => EarlierShare,
  ): TopologyHints | undefined {
    if (requests.length === 0) return undefined;
    return new Map(
      requests.map(([resource, count]) => [resource, this.#ofOne(resource, count, earlier(resource))]),
    );
  }

  #ofOne(resource: string, count: number, { had, reusable }: EarlierShare): TopologyHint[] | undefined {
    const all = this.#table.devices(resource);
    const numaNodes = this.#numaNodes;
    if (all.every((device) => device.numaNodes.length === 0)) return undefined;
    if (had !== undefined) {
      const ids = idsOf(had);
      if (ids.size !== count) return [];
      const available = all.filter(({ id }) => ids.has(id));
      return deviceHints({ count, all, available, reusable: [], numaNodes });
    }
    const taken = this.#allotments.taken(resource);
    const available = this.#table.healthy(resource).filter(({ id }) => !taken.has(id));
    const again = all.filter(({ id }) => reusable.has(id));
    if (available.length + again.length < count) return [];
    return deviceHints({ count, all, available, reusable: again, numaNodes });
  }
}

/** The devices of all of them together. */
export function joined(allotments: readonly Allotment[]): Pick<Allotment, 'devices'> | undefined {
  if (allotments.length === 0) return undefined;
  return { devices: new Map([[noNumaNode, allotments.flatMap((one) => [...idsOf(one)])]]) };
}

interface HintQuestion {
  readonly count: number;
  /** All there are, also those that somebody has: they say what would be possible on an empty machine. */
  readonly all: readonly Device[];
  readonly available: readonly Device[];
  /** Those the container is going to have in any case. */
  readonly reusable: readonly Device[];
  /** Of the machine; those that devices name are taken unless given. */
  readonly numaNodes: readonly number[] | undefined;
}

/** Every set of NUMA nodes near which there are enough devices. */
function deviceHints({ count, all, available, reusable, numaNodes }: HintQuestion): TopologyHint[] {
  const named = new Set(all.flatMap((device) => device.numaNodes));
  const nodes = [...(numaNodes === undefined ? named : named.intersection(new Set(numaNodes)))].toSorted(
    (one, other) => one - other,
  );
  const sets = subsets(nodes.length === 0 ? (numaNodes ?? []) : nodes);
  const isNear = (device: Device, set: readonly number[]) =>
    device.numaNodes.some((node) => set.includes(node));
  const near = (devices: readonly Device[], set: readonly number[]) =>
    devices.filter((device) => isNear(device, set)).length;
  const possible = sets.filter((set) => near(all, set) >= count).map((set) => set.length);
  const fewest = Math.min(nodes.length, ...possible);
  const placed = reusable.filter((device) => device.numaNodes.length > 0);
  return sets
    .filter((set) => placed.every((device) => isNear(device, set)))
    .filter((set) => placed.length + near(available, set) >= count)
    .map((set) => ({ numaNodes: set, preferred: set.length === fewest }));
}

/** All but the empty one. */
function subsets(nodes: readonly number[]): readonly (readonly number[])[] {
  const sets: (readonly number[])[] = [];
  for (const node of nodes) sets.push([node], ...sets.map((set) => [...set, node]));
  return sets;
}
