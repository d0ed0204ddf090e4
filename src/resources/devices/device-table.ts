import type { Container } from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { Device as ListedDevice } from './gen/device-plugin.ts';
import type { PluginConnection } from './plugin-connection.ts';

/** The amounts of devices for the node status, by resource name. */
export interface DeviceAmounts {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  readonly removed: readonly string[];
}

/*
 * The states of a resource:
 *
 *     restored ──> connected ──> listed ──> disconnected ──(after the grace period)──> removed
 *
 * A restored resource whose plugin does not register is also removed after the grace period. A
 * plugin that registers makes a disconnected or removed resource connected again.
 */
interface Resource {
  devices: ReadonlyMap<string, Device>;
  plugin: PluginConnection | undefined;
  /** Whether the last registered plugin requires PreStartContainer calls. */
  preStart: 'required' | 'not-required';
  /** Whether the device list was received from a plugin that is connected now. */
  isLive: boolean;
  /** Whether no plugin has listed devices for this resource so far. */
  isNew: boolean;
  /**
   * The time since when no connected plugin has listed devices of this resource; undefined while a
   * connected plugin has listed them.
   */
  unlistedSinceMs: number | undefined;
}

/** How long the devices of a disconnected plugin still count as capacity. */
export const graceMs = 300_000;
/** How long pods wait for a connected plugin to list its devices. */
const firstListMs = 10_000;

/** The resources of device plugins and their devices. */
export class DeviceTable {
  readonly #nowMs: () => number;
  /** The time until which the plugins of restored resources are expected to register. */
  readonly #expectedUntilMs: number;
  readonly #resources = new Map<string, Resource>();
  /**
   * The names of removed resources. They are reported with zero devices, so that the scheduler does
   * not treat them as cluster-level extended resources.
   */
  readonly #removed = new Set<string>();

  constructor(nowMs: () => number, expectedForMs: number) {
    this.#nowMs = nowMs;
    this.#expectedUntilMs = nowMs() + expectedForMs;
  }

  /**
   * Restores a resource from the checkpoint; it has no devices until its plugin registers again.
   */
  restore(resource: string): void {
    this.#resources.set(resource, this.#newResource('of-before'));
  }

  plugin(resource: string): PluginConnection | undefined {
    return this.#resources.get(resource)?.plugin;
  }

  /**
   * Whether the plugin requires a PreStartContainer call before a container with its devices
   * starts.
   */
  needsPreStart(resource: string): boolean {
    return this.#resources.get(resource)?.preStart === 'required';
  }

  plugins(): readonly PluginConnection[] {
    return [...this.#resources.values()].flatMap(({ plugin }) => (plugin === undefined ? [] : [plugin]));
  }

  /**
   * Connects a plugin to its resource. Returns the previous plugin of the resource, which is
   * replaced; the device list of the previous plugin stays valid until the new plugin lists its
   * devices.
   */
  connect(plugin: PluginConnection): PluginConnection | undefined {
    const resource = this.#resources.get(plugin.resource) ?? this.#newResource('new');
    const before = resource.plugin;
    resource.plugin = plugin;
    resource.preStart = plugin.options.preStartRequired ? 'required' : 'not-required';
    if (!resource.isLive) resource.unlistedSinceMs = this.#nowMs();
    this.#resources.set(plugin.resource, resource);
    return before;
  }

  /**
   * Stores the devices that the plugin listed. Returns the previous list; undefined if another
   * plugin has replaced this one.
   */
  list(
    plugin: PluginConnection,
    devices: ReadonlyMap<string, Device>,
  ): ReadonlyMap<string, Device> | undefined {
    const resource = this.#resources.get(plugin.resource);
    if (resource === undefined || resource.plugin !== plugin) return undefined;
    const before = resource.devices;
    Object.assign(resource, { devices, isLive: true, isNew: false, unlistedSinceMs: undefined });
    this.#removed.delete(plugin.resource);
    return before;
  }

  /** Disconnects the plugin; returns whether it was the current plugin of its resource. */
  disconnect(plugin: PluginConnection): boolean {
    const resource = this.#resources.get(plugin.resource);
    if (resource?.plugin !== plugin) return false;
    Object.assign(resource, { plugin: undefined, isLive: false, unlistedSinceMs: this.#nowMs() });
    return true;
  }

  has(resource: string): boolean {
    return this.#resources.has(resource);
  }

  device(resource: string, id: string): Device | undefined {
    return this.#resources.get(resource)?.devices.get(id);
  }

  devices(resource: string): readonly Device[] {
    return [...(this.#resources.get(resource)?.devices.values() ?? [])];
  }

  /** Returns the healthy devices of the resource; empty while no plugin is connected. */
  healthy(resource: string): readonly Device[] {
    const isLive = this.#resources.get(resource)?.isLive === true;
    return isLive ? this.devices(resource).filter(({ isHealthy }) => isHealthy) : [];
  }

  /** Returns the healthy devices of all resources, by resource name. */
  registered(): ReadonlyMap<string, readonly string[]> {
    return new Map([...this.#resources.keys()].map((name) => [name, this.healthy(name).map(({ id }) => id)]));
  }

  /**
   * Returns how long pods should wait for the plugin to list its devices; 0 if they should not
   * wait.
   */
  expectedForMs(resource: string): number {
    const known = this.#resources.get(resource);
    if (known === undefined || known.isLive) return 0;
    const untilMs =
      known.plugin === undefined ? this.#awaitedUntilMs(known) : (known.unlistedSinceMs ?? 0) + firstListMs;
    return Math.max(0, untilMs - this.#nowMs());
  }

  amounts(): DeviceAmounts {
    // The node status omits a new resource until its plugin has listed devices. A restored resource
    // is not omitted but reported with zero devices, because the Node object would keep the values
    // of an omitted resource.
    const shown = [...this.#resources].filter(([, one]) => !one.isNew || one.plugin === undefined);
    const count = (number: number) => `${number}`;
    return {
      capacity: Object.fromEntries(shown.map(([name, { devices }]) => [name, count(devices.size)])),
      allocatable: Object.fromEntries(shown.map(([name]) => [name, count(this.healthy(name).length)])),
      removed: [...this.#removed],
    };
  }

  /** Removes resources whose plugin has been disconnected for too long; returns their names. */
  prune(): readonly string[] {
    const gone = [...this.#resources]
      .filter(([, { plugin, unlistedSinceMs }]) => plugin === undefined && this.#isOver(unlistedSinceMs))
      .map(([name]) => name);
    for (const name of gone) {
      this.#resources.delete(name);
      this.#removed.add(name);
    }
    return gone;
  }

  /**
   * Returns the monotonic time at which the next resource may be removed; undefined if all plugins
   * are connected.
   */
  nextPruneMs(): number | undefined {
    const away = [...this.#resources.values()].filter(({ plugin }) => plugin === undefined);
    if (away.length === 0) return undefined;
    return Math.min(...away.map(({ unlistedSinceMs = 0 }) => unlistedSinceMs)) + graceMs;
  }

  #isOver(unlistedSinceMs: number | undefined): boolean {
    return unlistedSinceMs !== undefined && this.#nowMs() >= unlistedSinceMs + graceMs;
  }

  /**
   * Only the plugin of a restored resource, which has no devices yet, is expected to register
   * again.
   */
  #awaitedUntilMs({ devices }: Resource): number {
    return devices.size === 0 ? this.#expectedUntilMs : 0;
  }

  #newResource(known: 'new' | 'of-before'): Resource {
    return {
      devices: new Map(),
      plugin: undefined,
      preStart: 'not-required',
      isLive: false,
      isNew: known === 'new',
      unlistedSinceMs: this.#nowMs(),
    };
  }
}

export interface Device {
  readonly id: string;
  readonly isHealthy: boolean;
  /** The NUMA nodes that the plugin reported for the device; empty if it reported none. */
  readonly numaNodes: readonly number[];
}

/** A device and its NUMA nodes. */
export interface PlacedDevice {
  readonly resource: string;
  readonly id: string;
  readonly numaNodes: readonly number[];
}

/**
 * Parses the devices in the order of the plugin's list; a later device replaces one with the same
 * ID.
 */
export function readDevices(listed: readonly ListedDevice[]): ReadonlyMap<string, Device> {
  return new Map(
    listed.map(({ ID: id, health, topology }) => {
      const numaNodes = (topology?.nodes ?? []).map((node) => Number(node.ID));
      return [id, { id, isHealthy: health === 'Healthy', numaNodes }];
    }),
  );
}

/**
 * Returns the number of requested devices by resource, sorted by name. Limits and requests of
 * extended resources are equal, so the limits are read. Resources of resource claims are excluded.
 */
export function deviceRequests({ status }: Pod, container: Container): ReadonlyMap<string, number> {
  const { requestMappings = [] } = status.extendedResourceClaimStatus ?? {};
  const claimed = requestMappings.filter(({ containerName }) => containerName === container.name);
  const requested = Object.entries(container.resources?.limits ?? {})
    .filter(([name]) => name.includes('/') && claimed.every(({ resourceName }) => resourceName !== name))
    .map(([name, text]): [string, number] => [name, wholeNumber(text)])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return new Map(requested);
}

function wholeNumber(text: string): number {
  const quantity = tryParseQuantity(text);
  return quantity === undefined ? 0 : Number(quantityValue(quantity));
}
