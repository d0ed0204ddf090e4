import { KubelingError } from '../../lib/index.ts';
import type { TopologyHint, TopologyHints } from '../topology/index.ts';
import type { Device, DeviceTable } from './device-table.ts';
import { type DeviceAllocation, idsOf, noNumaNode, type PodDevices } from './pod-devices.ts';

/** The devices of one resource that the container already has or may reuse. */
export interface CurrentDevices {
  readonly had: Pick<DeviceAllocation, 'devices'> | undefined;
  /** The devices of exited init containers of the pod that the container may reuse. */
  readonly reusable: ReadonlySet<string>;
}

/** Computes the topology hints for the requested devices. */
export class DeviceHints {
  readonly #table: DeviceTable;
  readonly #podDevices: PodDevices;
  readonly #numaNodes: readonly number[] | undefined;

  constructor(table: DeviceTable, allocations: PodDevices, numaNodes: readonly number[] | undefined) {
    this.#table = table;
    this.#podDevices = allocations;
    this.#numaNodes = numaNodes;
  }

  /**
   * Returns the hints for each requested resource; undefined if the container requests no devices.
   */
  of(
    requests: readonly (readonly [string, number])[],
    earlier: (resource: string) => CurrentDevices,
  ): TopologyHints | undefined {
    if (requests.length === 0) return undefined;
    return new Map(
      requests.map(([resource, count]) => [resource, this.#ofOne(resource, count, earlier(resource))]),
    );
  }

  #ofOne(resource: string, count: number, { had, reusable }: CurrentDevices): TopologyHint[] | undefined {
    const all = this.#table.devices(resource);
    const numaNodes = this.#numaNodes;
    if (all.every((device) => device.numaNodes.length === 0)) return undefined;
    if (had !== undefined) {
      const ids = idsOf(had);
      if (ids.size !== count) return [];
      const available = all.filter(({ id }) => ids.has(id));
      return deviceHints({ count, all, available, reusable: [], numaNodes });
    }
    const taken = this.#podDevices.allocated(resource);
    const available = this.#table.healthy(resource).filter(({ id }) => !taken.has(id));
    const again = all.filter(({ id }) => reusable.has(id));
    if (available.length + again.length < count) return [];
    return deviceHints({ count, all, available, reusable: again, numaNodes });
  }
}

/** Merges the devices of several allocations into one. */
export function mergeDevices(
  allocations: readonly DeviceAllocation[],
): Pick<DeviceAllocation, 'devices'> | undefined {
  if (allocations.length === 0) return undefined;
  return { devices: new Map([[noNumaNode, allocations.flatMap((one) => [...idsOf(one)])]]) };
}

interface HintQuestion {
  readonly count: number;
  /**
   * All devices of the resource, including allocated ones: they show what an empty machine could
   * provide.
   */
  readonly all: readonly Device[];
  readonly available: readonly Device[];
  /** The devices that the container reuses from exited init containers. */
  readonly reusable: readonly Device[];
  /** The NUMA nodes of the machine; if undefined, the NUMA nodes of the devices. */
  readonly numaNodes: readonly number[] | undefined;
}

/** Returns all sets of NUMA nodes with enough devices. */
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

/** Returns all non-empty subsets of the NUMA nodes. */
function subsets(nodes: readonly number[]): readonly (readonly number[])[] {
  const sets: (readonly number[])[] = [];
  for (const node of nodes) sets.push([node], ...sets.map((set) => [...set, node]));
  return sets;
}

export interface DeviceRequest {
  readonly resource: string;
  readonly count: number;
  /** The devices of exited init containers, which are taken first. */
  readonly reusable: readonly string[];
  /** The healthy devices that are not allocated. */
  readonly available: readonly Device[];
  /** The NUMA nodes from which all devices should be taken; undefined for any. */
  readonly affinity: readonly number[] | undefined;
  /** Returns the devices that the plugin prefers; empty if it has no preference. */
  readonly preferred: (question: PreferredAllocationRequest) => Promise<readonly string[]>;
}

export interface PreferredAllocationRequest {
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  readonly size: number;
}

/**
 * Chooses the devices of a container: reusable ones first, then aligned ones, then the preferred
 * ones of the plugin.
 */
export async function chooseDevices(request: DeviceRequest): Promise<readonly string[]> {
  const { resource, count, available, preferred } = request;
  const choice = new Choice(count);
  choice.take(request.reusable);
  if (choice.missing === 0) return choice.taken;
  if (available.length < choice.missing) {
    const amounts = `Requested: ${choice.missing}, Available: ${available.length}`;
    throw new KubelingError(
      'DEVICE_UNAVAILABLE',
      `requested number of devices unavailable for ${resource}. ${amounts}`,
    );
  }
  const { near, elsewhere } = byNearness(request);
  const ask = async (from: readonly string[]) => {
    const mustInclude = [...choice.taken];
    const wishes = await preferred({ available: [...from, ...mustInclude], mustInclude, size: count });
    choice.take(wishes.filter((id) => from.includes(id)));
  };
  // All devices on the chosen NUMA nodes are used first, so that the decision of the topology
  // manager is respected; the plugin chooses among them.
  if (choice.missing < near.length) await ask(near);
  choice.take(near);
  if (choice.missing > 0) await ask(available.map(({ id }) => id));
  choice.take(elsewhere);
  return choice.taken;
}

class Choice {
  readonly #taken = new Set<string>();
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  get missing(): number {
    return this.#count - this.#taken.size;
  }

  get taken(): readonly string[] {
    return [...this.#taken];
  }

  take(ids: readonly string[]): void {
    for (const id of ids) if (this.missing > 0) this.#taken.add(id);
  }
}

/** Devices without NUMA nodes are taken last. */
function byNearness({ available, affinity }: DeviceRequest) {
  const isPlaced = (device: Device) => device.numaNodes.length > 0;
  const isNear = ({ numaNodes }: Device) => numaNodes.some((node) => affinity?.includes(node));
  const near = affinity === undefined ? [] : available.filter(isNear);
  const far = available.filter((device) => !near.includes(device));
  const elsewhere = [...far.filter(isPlaced), ...far.filter((device) => !isPlaced(device))];
  const ids = (devices: readonly Device[]) => devices.map(({ id }) => id);
  return { near: ids(near), elsewhere: ids(elsewhere) };
}
