import type { ResourceStatus } from '../../kinds/index.ts';
import type { Logger } from '../../lib/index.ts';
import { initContainersOf, isSidecar, type Pod, type PodUid } from '../../pods/index.ts';
import type { DeviceGrants } from '../../runtime/index.ts';
import type { DeviceTable } from './device-table.ts';
import { ContainerAllocateResponse } from './gen/device-plugin.ts';

/** The allocated devices of one resource of one container. */
export interface DeviceAllocation {
  readonly uid: PodUid;
  readonly container: string;
  readonly resource: string;
  /**
   * The device IDs by NUMA node; `noNumaNode` for devices without one. A device may have several
   * NUMA nodes.
   */
  readonly devices: ReadonlyMap<number, readonly string[]>;
  /** The encoded Allocate response of the plugin. */
  readonly response: Uint8Array;
}

export const noNumaNode = -1;

export function idsOf({ devices }: Pick<DeviceAllocation, 'devices'>): ReadonlySet<string> {
  return new Set([...devices.values()].flat());
}

export function byNumaNode(
  ids: readonly string[],
  numaNodesOf: (id: string) => readonly number[],
): DeviceAllocation['devices'] {
  const placed = ids.flatMap((id) => {
    const nodes = numaNodesOf(id);
    return (nodes.length === 0 ? [noNumaNode] : nodes).map((node) => ({ node, id }));
  });
  const nodes = Map.groupBy(placed, ({ node }) => node);
  return new Map([...nodes].map(([node, devices]) => [node, devices.map(({ id }) => id)]));
}

/** The device allocations of all pods. A device is never allocated to two pods at the same time. */
export class PodDevices {
  readonly #pods = new Map<PodUid, DeviceAllocation[]>();

  get size(): number {
    return this.#pods.size;
  }

  /** Replaces the allocation of this resource for the container. */
  add(allocation: DeviceAllocation): void {
    const { uid, container, resource } = allocation;
    const others = this.ofPod(uid).filter((one) => one.container !== container || one.resource !== resource);
    this.#pods.set(uid, [...others, allocation]);
  }

  remove(uid: PodUid): boolean {
    return this.#pods.delete(uid);
  }

  uids(): readonly PodUid[] {
    return [...this.#pods.keys()];
  }

  all(): readonly DeviceAllocation[] {
    return [...this.#pods.values()].flat();
  }

  ofPod(uid: PodUid): readonly DeviceAllocation[] {
    return this.#pods.get(uid) ?? [];
  }

  ofContainer(uid: PodUid, container: string): readonly DeviceAllocation[] {
    return this.ofPod(uid).filter((one) => one.container === container);
  }

  get(uid: PodUid, container: string, resource: string): DeviceAllocation | undefined {
    return this.ofContainer(uid, container).find((one) => one.resource === resource);
  }

  has(resource: string): boolean {
    return this.all().some((one) => one.resource === resource);
  }

  /**
   * Returns all allocated devices of the resource: those of all pods, or only those of the selected
   * pods.
   */
  allocated(resource: string, isMeant: (uid: PodUid) => boolean = () => true): ReadonlySet<string> {
    const meant = this.all().filter((one) => one.resource === resource && isMeant(one.uid));
    return new Set(meant.flatMap((one) => [...idsOf(one)]));
  }

  /** Returns the number of devices allocated to the pod, by resource. */
  counts(): ReadonlyMap<string, number> {
    const resources = new Set(this.all().map(({ resource }) => resource));
    return new Map([...resources].map((resource) => [resource, this.allocated(resource).size]));
  }

  /** Returns the UIDs of the pods that have any of these devices. */
  owners(resource: string, ids: ReadonlySet<string>): readonly PodUid[] {
    const isOwner = (one: DeviceAllocation) => one.resource === resource && !idsOf(one).isDisjointFrom(ids);
    return [...this.#pods].filter(([, all]) => all.some(isOwner)).map(([uid]) => uid);
  }

  /**
   * Returns the devices that the container can reuse: those of exited init containers, except
   * devices of sidecars and of concurrent containers.
   */
  reusable(pod: Pod, container: string, resource: string): ReadonlySet<string> {
    let free: ReadonlySet<string> = new Set();
    for (const one of [...initContainersOf(pod), ...pod.spec.containers]) {
      if (one.name === container) return free;
      const allocation = this.get(pod.metadata.uid, one.name, resource);
      if (allocation === undefined) continue;
      const ends = initContainersOf(pod).includes(one) && !isSidecar(one);
      free = ends ? free.union(idsOf(allocation)) : free.difference(idsOf(allocation));
    }
    return free;
  }
}

/**
 * Combines the Allocate responses of all resources into the run options of the container. Of two
 * conflicting entries, the first one is used.
 */
export function containerGrants(allocations: readonly DeviceAllocation[], logger: Logger): DeviceGrants {
  const responses = allocations.map(({ response }) => ContainerAllocateResponse.decode(response));
  const podUid = allocations[0]?.uid;
  const first = <Item>(
    kind: string,
    items: readonly Item[],
    place: (item: Item) => string,
    value: (item: Item) => string,
  ): readonly Item[] => {
    const seen = new Map<string, Item>();
    for (const item of items) {
      const before = seen.get(place(item));
      if (before === undefined) seen.set(place(item), item);
      else if (value(before) !== value(item))
        logger.warn('Ignored a conflicting device plugin response', {
          podUid,
          kind,
          name: place(item),
        });
    }
    return [...seen.values()];
  };
  const byKey = ([key]: readonly [string, string]) => key;
  const byValue = ([, value]: readonly [string, string]) => value;
  const envs = responses.flatMap((one) => Object.entries(one.envs));
  const notes = responses.flatMap((one) => Object.entries(one.annotations));
  const containerPath = (item: { readonly containerPath: string }) => item.containerPath;
  const hostPath = (item: { readonly hostPath: string }) => item.hostPath;
  const mounts = responses.flatMap((one) => one.mounts);
  const devices = responses.flatMap((one) => one.devices);
  return {
    variables: first('variable', envs, byKey, byValue).map(([name, value]) => ({
      name,
      value: Buffer.from(value),
    })),
    annotations: Object.fromEntries(first('annotation', notes, byKey, byValue)),
    mounts: first('mount', mounts, containerPath, hostPath).map((mount) => ({
      containerPath: mount.containerPath,
      hostPath: mount.hostPath,
      readonly: mount.readOnly,
    })),
    devices: first('device', devices, containerPath, hostPath).map((device) => ({
      containerPath: device.containerPath,
      hostPath: device.hostPath,
      permissions: device.permissions,
    })),
    cdiDevices: [...new Set(responses.flatMap((one) => one.cdiDevices.map(({ name }) => name)))],
  };
}

/** Returns the health of the allocated devices of the container, for its status. */
export function deviceStatus(
  allocations: readonly DeviceAllocation[],
  table: Pick<DeviceTable, 'device' | 'devices'>,
): readonly ResourceStatus[] {
  return allocations
    .toSorted((one, other) => (one.resource < other.resource ? -1 : 1))
    .map((allocation) => ({
      name: allocation.resource,
      resources: [...idsOf(allocation)]
        .toSorted()
        .map((resourceID) => ({ resourceID, health: healthOf(allocation.resource, resourceID, table) })),
    }));
}

function healthOf(resource: string, id: string, table: Pick<DeviceTable, 'device' | 'devices'>): string {
  const device = table.device(resource, id);
  if (device !== undefined) return device.isHealthy ? 'Healthy' : 'Unhealthy';
  // A device keeps its health until the plugin has listed its devices; a device missing from the
  // list is Unknown.
  return table.devices(resource).length === 0 ? 'Healthy' : 'Unknown';
}
