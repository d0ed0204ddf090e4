import type { Container } from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { Device as ListedDevice } from './gen/device-plugin.ts';
import type { PluginConnection } from './plugin-connection.ts';

/** Amounts by the name of the resource. */
export interface DeviceAmounts {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  readonly removed: readonly string[];
}

/*
 *   known from before ──> connected ──> listed <──> away ──> (after the grace period) forgotten
 *         │                   ^            │          │
 *         └── (grace) forgotten            └──────────┴──> connected anew
 */
interface Resource {
  devices: ReadonlyMap<string, Device>;
  plugin: PluginConnection | undefined;
  /** As the last plugin wanted it. */
  preStart: 'required' | 'not-required';
  /** Whether the list is of a plugin that is still there. */
  isLive: boolean;
  /** Whether no plugin has ever told of its devices. */
  isNew: boolean;
  /** Since when no plugin has told of its devices. */
  unlistedSinceMs: number | undefined;
}

/** How long the devices of a plugin that is away are counted. */
export const graceMs = 300_000;
/** A plugin that has connected tells of its devices within this time, or is not waited for. */
const firstListMs = 10_000;

/** The resources that plugins offer, and what of them is there. */
export class DeviceTable {
  readonly #nowMs: () => number;
  /** Until then the plugins of before are expected back. */
  readonly #expectedUntilMs: number;
  readonly #resources = new Map<string, Resource>();
  /** Offered once and gone: told as none, so that nobody takes them for a resource of the cluster. */
  readonly #removed = new Set<string>();

  constructor(nowMs: () => number, expectedForMs: number) {
    this.#nowMs = nowMs;
    this.#expectedUntilMs = nowMs() + expectedForMs;
  }

  /** Known from an earlier kubelet: counted as none until its plugin is back. */
  restore(resource: string): void {
    this.#resources.set(resource, this.#newResource('of-before'));
  }

  plugin(resource: string): PluginConnection | undefined {
    return this.#resources.get(resource)?.plugin;
  }

  /** Whether a plugin has to be asked before a container with its devices starts. */
  needsPreStart(resource: string): boolean {
    return this.#resources.get(resource)?.preStart === 'required';
  }

  plugins(): readonly PluginConnection[] {
    return [...this.#resources.values()].flatMap(({ plugin }) => (plugin === undefined ? [] : [plugin]));
  }

  /** Answers the one whose place it takes. What that one told holds until the new one tells. */
  connect(plugin: PluginConnection): PluginConnection | undefined {
    const resource = this.#resources.get(plugin.resource) ?? this.#newResource('new');
    const before = resource.plugin;
    resource.plugin = plugin;
    resource.preStart = plugin.options.preStartRequired ? 'required' : 'not-required';
    if (!resource.isLive) resource.unlistedSinceMs = this.#nowMs();
    this.#resources.set(plugin.resource, resource);
    return before;
  }

  /** Answers the list before this one; undefined for a plugin that is not the resource's any more. */
  list(
    plugin: PluginConnection,
    devices: ReadonlyMap<string, Device>,
  ): ReadonlyMap<string, Device> | undefined {
    const resource = this.#resources.get(plugin.resource);
    if (resource === undefined || resource.plugin !== plugin) return undefined;
    const before = resource.devices;
    Object.assign(resource, { devices, isLive: true, isNew: false, silentSinceMs: undefined });
    this.#removed.delete(plugin.resource);
    return before;
  }

  /** Answers whether it was the plugin of its resource. */
  disconnect(plugin: PluginConnection): boolean {
    const resource = this.#resources.get(plugin.resource);
    if (resource?.plugin !== plugin) return false;
    Object.assign(resource, { plugin: undefined, isLive: false, silentSinceMs: this.#nowMs() });
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

  /** None while no plugin answers for them. */
  healthy(resource: string): readonly Device[] {
    const isLive = this.#resources.get(resource)?.isLive === true;
    return isLive ? this.devices(resource).filter(({ isHealthy }) => isHealthy) : [];
  }

  /** The healthy devices of each resource. */
  registered(): ReadonlyMap<string, readonly string[]> {
    return new Map([...this.#resources.keys()].map((name) => [name, this.healthy(name).map(({ id }) => id)]));
  }

  /** How much longer it is worth waiting for the plugin to tell of its devices; 0 for not at all. */
  expectedForMs(resource: string): number {
    const known = this.#resources.get(resource);
    if (known === undefined || known.isLive) return 0;
    const untilMs =
      known.plugin === undefined ? this.#awaitedUntilMs(known) : (known.unlistedSinceMs ?? 0) + firstListMs;
    return Math.max(0, untilMs - this.#nowMs());
  }

  amounts(): DeviceAmounts {
    // One that has connected for the first time and told nothing yet is nothing to speak of; who is back has none until
    // it tells, as what is left out here stays as the Node has it.
    const shown = [...this.#resources].filter(([, one]) => !one.isNew || one.plugin === undefined);
    const count = (number: number) => `${number}`;
    return {
      capacity: Object.fromEntries(shown.map(([name, { devices }]) => [name, count(devices.size)])),
      allocatable: Object.fromEntries(shown.map(([name]) => [name, count(this.healthy(name).length)])),
      removed: [...this.#removed],
    };
  }

  /** Forgets those whose plugin has been away for too long; answers their names. */
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

  /** When the next may have to be forgotten; undefined while none is away. */
  nextPruneMs(): number | undefined {
    const away = [...this.#resources.values()].filter(({ plugin }) => plugin === undefined);
    if (away.length === 0) return undefined;
    return Math.min(...away.map(({ unlistedSinceMs = 0 }) => unlistedSinceMs)) + graceMs;
  }

  #isOver(silentSinceMs: number | undefined): boolean {
    return silentSinceMs !== undefined && this.#nowMs() >= silentSinceMs + graceMs;
  }

  /** Only who was there before the kubelet was started is expected to come back by himself. */
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
  /** Near which it is; empty where nobody knows, or it does not matter. */
  readonly numaNodes: readonly number[];
}

/** A device, and the NUMA nodes it is near. */
export interface PlacedDevice {
  readonly resource: string;
  readonly id: string;
  readonly numaNodes: readonly number[];
}

/** In the order the plugin lists them; of those with one id the last counts. */
export function readDevices(listed: readonly ListedDevice[]): ReadonlyMap<string, Device> {
  return new Map(
    listed.map(({ ID: id, health, topology }) => {
      const numaNodes = (topology?.nodes ?? []).map((node) => Number(node.ID));
      return [id, { id, isHealthy: health === 'Healthy', numaNodes }];
    }),
  );
}

/**
 * How many of each resource the container is to have, sorted by name. Of what comes by the piece nobody may ask for more than
 * he is held to, so that the limits say it all. What claims stand for is not given out here.
 */
export function deviceRequests({ status }: Pod, container: Container): ReadonlyMap<string, number> {
  const { requestMappings = [] } = status.extendedResourceClaimStatus ?? {};
  const claimed = requestMappings.filter(({ containerName }) => containerName === container.name);
  const asked = Object.entries(container.resources?.limits ?? {})
    .filter(([name]) => name.includes('/') && claimed.every(({ resourceName }) => resourceName !== name))
    .map(([name, text]): [string, number] => [name, wholeNumber(text)])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return new Map(asked);
}

function wholeNumber(text: string): number {
  const quantity = tryParseQuantity(text);
  return quantity === undefined ? 0 : Number(quantityValue(quantity));
}
