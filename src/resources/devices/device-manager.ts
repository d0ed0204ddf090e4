import { posix } from 'node:path';
import type { Container, ResourceStatus } from '../../kinds/index.ts';
import {
  type Clock,
  KeyedMutex,
  KubelingError,
  type Logger,
  quantityValue,
  type Random,
  type Timer,
} from '../../lib/index.ts';
import type { Plugin, PluginHandler } from '../../plugins/index.ts';
import { initContainersOf, type Pod, type PodUid, podLimits } from '../../pods/index.ts';
import type { DeviceGrants, RuntimeFiles } from '../../runtime/index.ts';
import { allocateFromProviders } from '../admission/allocate-from-providers.ts';
import type { Rejection } from '../admission/index.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/index.ts';
import { checkpointName, DeviceCheckpoint } from './checkpoint.ts';
import type { DeviceHost } from './device-host.ts';
import {
  type Device,
  type DeviceAmounts,
  DeviceTable,
  deviceRequests,
  type PlacedDevice,
} from './device-table.ts';
import { DeviceWaits } from './device-waits.ts';
import type { DeviceObserver } from './metrics.ts';
import type { PluginConnection } from './plugin-connection.ts';
import { PluginEndpoints } from './plugin-endpoints.ts';
import { validateDiscovered, validateRegistration } from './plugin-registration.ts';
import {
  byNumaNode,
  containerGrants,
  type DeviceAllocation,
  deviceStatus,
  idsOf,
  noNumaNode,
  PodDevices,
} from './pod-devices.ts';
import { chooseDevices, DeviceHints, mergeDevices } from './topology-hints.ts';

export interface DeviceManagerDeps {
  /** The directory of the plugin sockets and the checkpoint. */
  readonly directory: string;
  readonly host: Pick<DeviceHost, 'open' | 'identity'>;
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly observer: DeviceObserver;
  /** The NUMA nodes of the machine; if undefined, the NUMA nodes that plugins report. */
  readonly numaNodes?: readonly number[] | undefined;
  /** Whether the pod may still use its devices; true while the state of the pod is unknown. */
  readonly mayUse: (uid: PodUid) => boolean;
  /** Whether the pod is terminating, so that its devices are free soon. */
  readonly isTerminating: (uid: PodUid) => boolean;
  /**
   * Whether the container is running or has completed permanently, so that it needs no new devices.
   */
  readonly isRunningOrFinished: (pod: Pod, container: Container) => boolean;
  /** Called when the device capacity or the allocatable devices have changed. */
  readonly changed: () => void;
  /** Called when the health of a device of the pod has changed. */
  readonly healthChanged: (uid: PodUid) => void;
}

/** How long pods wait for plugins to register again after a restart of the kubelet. */
const expectedForMs = 45_000;

/** Allocates the devices of device plugins to containers. */
export class DeviceManager implements HintProvider, PluginHandler, AsyncDisposable {
  readonly #deps: DeviceManagerDeps;
  readonly #table: DeviceTable;
  readonly #podDevices = new PodDevices();
  readonly #hints: DeviceHints;
  readonly #checkpoint: DeviceCheckpoint;
  readonly #plugins: PluginEndpoints;
  /** Allows one allocation at a time for each resource. */
  readonly #resourceLocks = new KeyedMutex<string>();
  /**
   * Allows one pod admission at a time for each resource. A pod lock is always acquired before the
   * resource lock, never after it, which avoids deadlocks.
   */
  readonly #podLocks = new KeyedMutex<string>();
  readonly #waits: DeviceWaits;
  /**
   * The connections to device plugins that the kubelet discovered by their sockets; plugins that
   * call Register are not included.
   */
  readonly #discovered = new Map<string, PluginConnection>();
  #pruneTimer: Timer | undefined;

  constructor(deps: DeviceManagerDeps) {
    this.#deps = deps;
    const { clock, directory, files } = deps;
    this.#table = new DeviceTable(() => clock.monotonicMs(), expectedForMs);
    this.#waits = new DeviceWaits({
      ...deps,
      table: this.#table,
      podDevices: this.#podDevices,
      releaseInactive: () => this.free(),
    });
    this.#hints = new DeviceHints(this.#table, this.#podDevices, deps.numaNodes);
    const record = () => ({ allocations: this.#podDevices.all(), registered: this.#table.registered() });
    this.#checkpoint = new DeviceCheckpoint(posix.join(directory, checkpointName), files, record);
    this.#plugins = new PluginEndpoints({
      ...deps,
      table: this.#table,
      listed: (resource, before) => this.#listed(resource, before),
      changed: () => this.#changed(),
    });
  }

  /** Restores the device allocations of a previous kubelet. Call once, before any other method. */
  async restore(): Promise<void> {
    try {
      const { allocations = [], registered = new Map() } = (await this.#checkpoint.read()) ?? {};
      for (const allocation of allocations) this.#podDevices.add(allocation);
      for (const resource of registered.keys()) this.#table.restore(resource);
      this.#schedulePrune();
    } catch (error) {
      this.#deps.logger.error('Failed to restore device allocations', error);
    }
  }

  /** Whether a checkpoint file of device allocations exists. */
  get hasCheckpoint(): boolean {
    return this.#checkpoint.exists;
  }

  /** The number of pods with devices. */
  get size(): number {
    return this.#podDevices.size;
  }

  /**
   * Handles the Register call of a plugin. Throws PLUGIN_REFUSED or DEVICE_PLUGIN with the message
   * for the plugin.
   */
  async registerEndpoint(
    request: { readonly version: string; readonly endpoint: string; readonly resourceName: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { resourceName: resource, endpoint } = request;
    this.#deps.observer.registered(resource);
    await validateRegistration(request);
    await this.#plugins.connect({ resource, socket: posix.join(this.#deps.directory, endpoint) }, signal);
  }

  async register(plugin: Plugin, signal: AbortSignal): Promise<void> {
    await validateDiscovered(plugin);
    const { name: resource, endpoint: socket } = plugin;
    this.#discovered.set(keyOf(plugin), await this.#plugins.connect({ resource, socket }, signal));
  }

  deregister(plugin: Plugin): void {
    const connection = this.#discovered.get(keyOf(plugin));
    this.#discovered.delete(keyOf(plugin));
    if (connection !== undefined) this.#plugins.disconnect(connection);
  }

  amounts(): DeviceAmounts {
    return this.#table.amounts();
  }

  /** Returns the number of allocated devices by resource name. */
  allocatedCounts(): ReadonlyMap<string, number> {
    return this.#podDevices.counts();
  }

  hasDevices(uid: PodUid): boolean {
    return this.#podDevices.ofPod(uid).length > 0;
  }

  /** Whether the pod requests devices of a registered plugin. */
  isRequestedBy(pod: Pod): boolean {
    return containersOf(pod).some((container) => this.#requests(pod, container).length > 0);
  }

  /**
   * Waits for a limited time for the plugins that are expected to register and for the devices of
   * terminating pods.
   */
  async ready(pod: Pod, signal: AbortSignal): Promise<void> {
    const resources = containersOf(pod)
      .filter((container) => !this.#deps.isRunningOrFinished(pod, container))
      .flatMap((container) => this.#requests(pod, container).map(([resource]) => resource));
    await this.#waits.forPlugins(resources, signal);
    await this.#waits.forTerminatingPods(pod, resources, signal);
  }

  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined {
    this.free();
    const { uid } = pod.metadata;
    return this.#hints.of(this.#requests(pod, container), (resource) => ({
      had: this.#podDevices.get(uid, container.name, resource),
      reusable: this.#podDevices.reusable(pod, container.name, resource),
    }));
  }

  getPodTopologyHints(pod: Pod): TopologyHints | undefined {
    this.free();
    const { uid } = pod.metadata;
    const requests = [...podLimits(pod, { overhead: 'excluded' })]
      .map(([resource, amount]) => [resource, Number(quantityValue(amount))] as const)
      .filter(([resource, count]) => count > 0 && this.#isGivenOut(resource));
    return this.#hints.of(requests, (resource) => ({
      had: mergeDevices(this.#podDevices.ofPod(uid).filter((one) => one.resource === resource)),
      reusable: new Set(),
    }));
  }

  /**
   * Serializes pods that request the same resources, so that two pods cannot each hold what the
   * other needs.
   */
  async allocatePod(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined> {
    const requested = containersOf(pod).flatMap((container) => this.#requests(pod, container));
    using _turn = await this.#podLocks.acquireAll(
      requested.map(([resource]) => resource),
      signal,
    );
    return await allocateFromProviders(pod, [this], signal);
  }

  async allocate(pod: Pod, container: Container, { affinity, signal }: AllocationTerms): Promise<undefined> {
    if (this.#deps.isRunningOrFinished(pod, container)) return;
    await this.#allocateAll(pod, container, affinity.numaNodes, signal);
  }

  /**
   * Returns the run options for the devices of the container, after the plugins have prepared the
   * devices for its start.
   */
  async grants(pod: Pod, container: Container, signal: AbortSignal): Promise<DeviceGrants | undefined> {
    const { uid } = pod.metadata;
    const requests = this.#requests(pod, container);
    const hasAll = requests.every(([resource]) => this.#podDevices.get(uid, container.name, resource));
    // The checkpoint entry of this container was lost, so its devices are allocated again.
    if (!hasAll) await this.#allocateAll(pod, container, undefined, signal);
    const allocations = this.#podDevices.ofContainer(uid, container.name);
    for (const allocation of allocations) await this.#preStart(allocation, signal);
    return allocations.length === 0 ? undefined : containerGrants(allocations, this.#deps.logger);
  }

  /** Returns the health of the devices of the container, for its status. */
  statusOf(uid: PodUid, container: string): readonly ResourceStatus[] {
    return deviceStatus(this.#podDevices.ofContainer(uid, container), this.#table);
  }

  /** Returns the devices that are allocated to the container. */
  devicesOf(uid: PodUid, container: string): readonly PlacedDevice[] {
    return this.#podDevices.ofContainer(uid, container).flatMap((allocation) =>
      [...idsOf(allocation)].map((id) => {
        const near = [...allocation.devices].filter(([node, ids]) => node !== noNumaNode && ids.includes(id));
        return { resource: allocation.resource, id, numaNodes: near.map(([node]) => node) };
      }),
    );
  }

  /** Returns all healthy devices, allocated or not. */
  allocatable(): readonly PlacedDevice[] {
    return [...this.#table.registered().keys()].flatMap((resource) =>
      this.#table.healthy(resource).map(({ id, numaNodes }) => ({ resource, id, numaNodes })),
    );
  }

  /** Releases the devices of terminated pods. */
  free(): void {
    const gone = this.#podDevices.uids().filter((uid) => !this.#deps.mayUse(uid));
    for (const uid of gone) this.#podDevices.remove(uid);
    if (gone.length > 0) this.#saveSoon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#pruneTimer?.cancel();
    await this.#plugins[Symbol.asyncDispose]();
    await this.#checkpoint.flushed();
  }

  /** The requests of a container for resources of device plugins. */
  #requests(pod: Pod, container: Container): readonly (readonly [string, number])[] {
    return [...deviceRequests(pod, container)].filter(
      ([resource, count]) => count > 0 && this.#isGivenOut(resource),
    );
  }

  #isGivenOut(resource: string): boolean {
    return this.#table.has(resource) || this.#podDevices.has(resource);
  }

  async #allocateAll(
    pod: Pod,
    container: Container,
    affinity: readonly number[] | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    for (const [resource, count] of this.#requests(pod, container)) {
      const terms = { resource, count, affinity, signal };
      await this.#resourceLocks.run(resource, () => this.#allocate(pod, container, terms), signal);
    }
  }

  async #allocate(
    pod: Pod,
    container: Container,
    { resource, count, affinity, signal }: ResourceTerms,
  ): Promise<void> {
    const { uid } = pod.metadata;
    const had = this.#podDevices.get(uid, container.name, resource);
    if (had !== undefined && idsOf(had).size !== count) {
      const change = `from ${idsOf(had).size} to ${count}`;
      throw unavailable(
        `pod "${uid}" container "${container.name}" changed request for resource "${resource}" ${change}`,
      );
    }
    this.free();
    const healthy = this.#usable(resource, had);
    if (had !== undefined) return;
    const allocatedIds = this.#podDevices.allocated(resource);
    const ids = await chooseDevices({
      resource,
      count,
      reusable: healthy
        .map(({ id }) => id)
        .filter((id) => this.#podDevices.reusable(pod, container.name, resource).has(id)),
      available: healthy.filter(({ id }) => !allocatedIds.has(id)),
      affinity,
      preferred: (question) =>
        this.#plugins.call(resource, (plugin) => plugin.preferred(question, signal), signal),
    });
    const response = await this.#allocateFromPlugin(resource, ids, signal);
    this.#podDevices.add({
      uid,
      container: container.name,
      resource,
      devices: byNumaNode(ids, (id) => this.#table.device(resource, id)?.numaNodes ?? []),
      response,
    });
    await this.#checkpoint.save();
  }

  /**
   * Returns the healthy devices of the resource; throws if a device that the container already has
   * is not healthy.
   */
  #usable(resource: string, had: DeviceAllocation | undefined): readonly Device[] {
    if (!this.#table.has(resource)) throw unavailable(`cannot allocate unregistered device ${resource}`);
    const healthy = this.#table.healthy(resource);
    const problem = (what: string) => unavailable(`${what}; cannot allocate unhealthy devices ${resource}`);
    if (healthy.length === 0) throw problem('no healthy devices present');
    const ids = new Set(healthy.map(({ id }) => id));
    if (had !== undefined && !idsOf(had).isSubsetOf(ids))
      throw problem('previously allocated devices are no longer healthy');
    return healthy;
  }

  async #allocateFromPlugin(
    resource: string,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const { clock, observer } = this.#deps;
    const beganMs = clock.monotonicMs();
    try {
      return await this.#plugins.call(resource, (plugin) => plugin.allocate(ids, signal), signal);
    } finally {
      observer.allocated(resource, clock.monotonicMs() - beganMs);
    }
  }

  async #preStart(allocation: DeviceAllocation, signal: AbortSignal): Promise<void> {
    const { resource } = allocation;
    if (!this.#table.needsPreStart(resource)) return;
    const ids = [...idsOf(allocation)];
    await this.#plugins.call(resource, (plugin) => plugin.preStart(ids, signal), signal);
  }

  #listed(resource: string, before: ReadonlyMap<string, Device>): void {
    const now = new Map(this.#table.devices(resource).map((device) => [device.id, device]));
    const ids = [...new Set([...before.keys(), ...now.keys()])];
    const changed = ids.filter((id) => before.get(id)?.isHealthy !== now.get(id)?.isHealthy);
    for (const uid of this.#podDevices.owners(resource, new Set(changed))) this.#deps.healthChanged(uid);
    this.#waits.notify();
    this.#saveSoon();
  }

  #changed(): void {
    this.#schedulePrune();
    this.#waits.notify();
    this.#deps.changed();
  }

  /** A failed write is logged; the next change writes the checkpoint again. */
  #saveSoon(): void {
    this.#checkpoint
      .save()
      .catch((error: unknown) => this.#deps.logger.error('Failed to write device allocations', error));
  }

  #schedulePrune(): void {
    const { clock, changed, logger } = this.#deps;
    this.#pruneTimer?.cancel();
    this.#pruneTimer = undefined;
    const atMs = this.#table.nextPruneMs();
    if (atMs === undefined) return;
    this.#pruneTimer = clock.timer(Math.max(0, atMs - clock.monotonicMs()), () => {
      for (const resource of this.#table.prune())
        logger.info('Removed the resource of a missing device plugin', { resource });
      this.#saveSoon();
      this.#schedulePrune();
      changed();
    });
  }
}

interface ResourceTerms {
  readonly resource: string;
  readonly count: number;
  readonly affinity: readonly number[] | undefined;
  readonly signal: AbortSignal;
}

function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers];
}

function keyOf({ name, endpoint }: Plugin): string {
  return `${name} ${endpoint}`;
}

function unavailable(message: string): KubelingError {
  return new KubelingError('DEVICE_UNAVAILABLE', message);
}
