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
import { allotPod } from '../admission/allocate-exclusive.ts';
import type { Refusal } from '../admission/index.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/index.ts';
import { checkpointName, RecordKeeper } from './checkpoint.ts';
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
import { PluginLives } from './plugin-endpoints.ts';
import { refuseRegistration, refuseWatched } from './plugin-registration.ts';
import {
  type Allotment,
  Allotments,
  byNumaNode,
  containerGrants,
  deviceStatus,
  idsOf,
  noNumaNode,
} from './pod-devices.ts';
import { chooseDevices, DeviceHints, joined } from './topology-hints.ts';

export interface DeviceManagerDeps {
  /** Where the sockets are, and what is noted. */
  readonly directory: string;
  readonly host: Pick<DeviceHost, 'open' | 'identity'>;
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly observer: DeviceObserver;
  /** NUMA nodes of the machine; those that plugins name unless given. */
  readonly numaNodes?: readonly number[] | undefined;
  /** Whether the pod, or what is left of it, may still use what it was given; yes while nobody knows. */
  readonly mayUse: (uid: PodUid) => boolean;
  /** Whether it is on its way out, so that what it has is free soon. */
  readonly isEnding: (uid: PodUid) => boolean;
  /** Whether the container runs, or has ended for good: it needs nothing any more that it does not have. */
  readonly isServed: (pod: Pod, container: Container) => boolean;
  /** What there is to be given out has become another. */
  readonly changed: () => void;
  /** A device of the pod is not as it was. */
  readonly healthChanged: (uid: PodUid) => void;
}

/** Plugins that were there before the kubelet was started are back within this time, or are not waited for. */
const expectedForMs = 45_000;

/** Gives the devices of plugins to containers. */
export class DeviceManager implements HintProvider, PluginHandler, AsyncDisposable {
  readonly #deps: DeviceManagerDeps;
  readonly #table: DeviceTable;
  readonly #allotments = new Allotments();
  readonly #hints: DeviceHints;
  readonly #record: RecordKeeper;
  readonly #plugins: PluginLives;
  /** By resource: nobody chooses among devices while another does. */
  readonly #turns = new KeyedMutex<string>();
  /** By resource: pods that come. Whoever has them may have to wait for one of those above, never the other way. */
  readonly #podTurns = new KeyedMutex<string>();
  readonly #waits: DeviceWaits;
  /** Those that were found by their sockets, by what they are registered as. */
  readonly #watched = new Map<string, PluginConnection>();
  #forgetting: Timer | undefined;

  constructor(deps: DeviceManagerDeps) {
    this.#deps = deps;
    const { clock, directory, files } = deps;
    this.#table = new DeviceTable(() => clock.monotonicMs(), expectedForMs);
    this.#waits = new DeviceWaits({
      ...deps,
      table: this.#table,
      allotments: this.#allotments,
      free: () => this.free(),
    });
    this.#hints = new DeviceHints(this.#table, this.#allotments, deps.numaNodes);
    const record = () => ({ allotments: this.#allotments.all(), registered: this.#table.registered() });
    this.#record = new RecordKeeper(posix.join(directory, checkpointName), files, record);
    this.#plugins = new PluginLives({
      ...deps,
      table: this.#table,
      listed: (resource, before) => this.#listed(resource, before),
      changed: () => this.#changed(),
    });
  }

  /** Takes over what an earlier kubelet has noted; to be called once, before anything else. */
  async open(): Promise<void> {
    try {
      const { allotments = [], registered = new Map() } = (await this.#record.read()) ?? {};
      for (const allotment of allotments) this.#allotments.add(allotment);
      for (const resource of registered.keys()) this.#table.remember(resource);
      this.#planForgetting();
    } catch (error) {
      this.#deps.logger.error('Who has which devices is not known any more', error);
    }
  }

  /** Whether anything is noted of devices of this machine. */
  get isRecorded(): boolean {
    return this.#record.isThere;
  }

  /** How many pods have devices. */
  get size(): number {
    return this.#allotments.size;
  }

  /** A plugin makes itself known. Throws PLUGIN_REFUSED or DEVICE_PLUGIN, in the words it is told. */
  async registerEndpoint(
    request: { readonly version: string; readonly endpoint: string; readonly resourceName: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { resourceName: resource, endpoint } = request;
    this.#deps.observer.registered(resource);
    await refuseRegistration(request);
    await this.#plugins.begin({ resource, socket: posix.join(this.#deps.directory, endpoint) }, signal);
  }

  async register(plugin: Plugin, signal: AbortSignal): Promise<void> {
    await refuseWatched(plugin);
    const { name: resource, endpoint: socket } = plugin;
    this.#watched.set(keyOf(plugin), await this.#plugins.begin({ resource, socket }, signal));
  }

  deregister(plugin: Plugin): void {
    const connection = this.#watched.get(keyOf(plugin));
    this.#watched.delete(keyOf(plugin));
    if (connection !== undefined) this.#plugins.end(connection);
  }

  amounts(): DeviceAmounts {
    return this.#table.amounts();
  }

  /** How many devices of each resource somebody has. */
  taken(): ReadonlyMap<string, number> {
    return this.#allotments.counts();
  }

  hasDevices(uid: PodUid): boolean {
    return this.#allotments.ofPod(uid).length > 0;
  }

  /** Whether the pod asks for devices that are given out here. */
  isAskedBy(pod: Pod): boolean {
    return containersOf(pod).some((container) => this.#requests(pod, container).length > 0);
  }

  /** Waits for plugins that are expected, and for devices of pods that are ending, as long as that is worth while. */
  async ready(pod: Pod, signal: AbortSignal): Promise<void> {
    const resources = containersOf(pod)
      .filter((container) => !this.#deps.isServed(pod, container))
      .flatMap((container) => this.#requests(pod, container).map(([resource]) => resource));
    await this.#waits.forPlugins(resources, signal);
    await this.#waits.forRoom(pod, resources, signal);
  }

  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined {
    this.free();
    const { uid } = pod.metadata;
    return this.#hints.of(this.#requests(pod, container), (resource) => ({
      had: this.#allotments.get(uid, container.name, resource),
      reusable: this.#allotments.reusable(pod, container.name, resource),
    }));
  }

  getPodTopologyHints(pod: Pod): TopologyHints | undefined {
    this.free();
    const { uid } = pod.metadata;
    const requests = [...podLimits(pod, { overhead: 'excluded' })]
      .map(([resource, amount]) => [resource, Number(quantityValue(amount))] as const)
      .filter(([resource, count]) => count > 0 && this.#isGivenOut(resource));
    return this.#hints.of(requests, (resource) => ({
      had: joined(this.#allotments.ofPod(uid).filter((one) => one.resource === resource)),
      reusable: new Set(),
    }));
  }

  /** Of two that want the same two resources one has its turn first, so that neither keeps what the other needs. */
  async allot(pod: Pod, signal: AbortSignal): Promise<Refusal | undefined> {
    const asked = containersOf(pod).flatMap((container) => this.#requests(pod, container));
    using _turn = await this.#podTurns.acquireAll(
      asked.map(([resource]) => resource),
      signal,
    );
    return await allotPod(pod, [this], signal);
  }

  async allocate(pod: Pod, container: Container, { affinity, signal }: AllocationTerms): Promise<undefined> {
    if (this.#deps.isServed(pod, container)) return;
    await this.#allocateAll(pod, container, affinity.numaNodes, signal);
  }

  /** What the container is given for its devices, which are made ready for it. */
  async grants(pod: Pod, container: Container, signal: AbortSignal): Promise<DeviceGrants | undefined> {
    const { uid } = pod.metadata;
    const requests = this.#requests(pod, container);
    const hasAll = requests.every(([resource]) => this.#allotments.get(uid, container.name, resource));
    // What it once had was lost with what was noted.
    if (!hasAll) await this.#allocateAll(pod, container, undefined, signal);
    const allotments = this.#allotments.ofContainer(uid, container.name);
    for (const allotment of allotments) await this.#preStart(allotment, signal);
    return allotments.length === 0 ? undefined : containerGrants(allotments, this.#deps.logger);
  }

  /** How the devices of the container are, as its status tells. */
  statusOf(uid: PodUid, container: string): readonly ResourceStatus[] {
    return deviceStatus(this.#allotments.ofContainer(uid, container), this.#table);
  }

  /** What the container has. */
  devicesOf(uid: PodUid, container: string): readonly PlacedDevice[] {
    return this.#allotments.ofContainer(uid, container).flatMap((allotment) =>
      [...idsOf(allotment)].map((id) => {
        const near = [...allotment.devices].filter(([node, ids]) => node !== noNumaNode && ids.includes(id));
        return { resource: allotment.resource, id, numaNodes: near.map(([node]) => node) };
      }),
    );
  }

  /** All devices that can be given out, also those that somebody has. */
  allocatable(): readonly PlacedDevice[] {
    return [...this.#table.registered().keys()].flatMap((resource) =>
      this.#table.healthy(resource).map(({ id, numaNodes }) => ({ resource, id, numaNodes })),
    );
  }

  /** Takes their devices from pods that cannot use them any more. */
  free(): void {
    const gone = this.#allotments.uids().filter((uid) => !this.#deps.mayUse(uid));
    for (const uid of gone) this.#allotments.remove(uid);
    if (gone.length > 0) this.#saveSoon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#forgetting?.cancel();
    await this.#plugins[Symbol.asyncDispose]();
    await this.#record.settled();
  }

  /** Of what is given out here. */
  #requests(pod: Pod, container: Container): readonly (readonly [string, number])[] {
    return [...deviceRequests(pod, container)].filter(
      ([resource, count]) => count > 0 && this.#isGivenOut(resource),
    );
  }

  #isGivenOut(resource: string): boolean {
    return this.#table.has(resource) || this.#allotments.has(resource);
  }

  async #allocateAll(
    pod: Pod,
    container: Container,
    affinity: readonly number[] | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    for (const [resource, count] of this.#requests(pod, container)) {
      const terms = { resource, count, affinity, signal };
      await this.#turns.run(resource, () => this.#allocate(pod, container, terms), signal);
    }
  }

  async #allocate(
    pod: Pod,
    container: Container,
    { resource, count, affinity, signal }: ResourceTerms,
  ): Promise<void> {
    const { uid } = pod.metadata;
    const had = this.#allotments.get(uid, container.name, resource);
    if (had !== undefined && idsOf(had).size !== count) {
      const change = `from ${idsOf(had).size} to ${count}`;
      throw unavailable(
        `pod "${uid}" container "${container.name}" changed request for resource "${resource}" ${change}`,
      );
    }
    this.free();
    const healthy = this.#usable(resource, had);
    if (had !== undefined) return;
    const taken = this.#allotments.taken(resource);
    const ids = await chooseDevices({
      resource,
      count,
      reusable: healthy
        .map(({ id }) => id)
        .filter((id) => this.#allotments.reusable(pod, container.name, resource).has(id)),
      available: healthy.filter(({ id }) => !taken.has(id)),
      affinity,
      preferred: (question) =>
        this.#plugins.ask(resource, (plugin) => plugin.preferred(question, signal), signal),
    });
    const response = await this.#setAside(resource, ids, signal);
    this.#allotments.add({
      uid,
      container: container.name,
      resource,
      devices: byNumaNode(ids, (id) => this.#table.device(resource, id)?.numaNodes ?? []),
      response,
    });
    await this.#record.save();
  }

  /** The healthy devices, if those that it has already are among them. */
  #usable(resource: string, had: Allotment | undefined): readonly Device[] {
    if (!this.#table.has(resource)) throw unavailable(`cannot allocate unregistered device ${resource}`);
    const healthy = this.#table.healthy(resource);
    const trouble = (what: string) => unavailable(`${what}; cannot allocate unhealthy devices ${resource}`);
    if (healthy.length === 0) throw trouble('no healthy devices present');
    const ids = new Set(healthy.map(({ id }) => id));
    if (had !== undefined && !idsOf(had).isSubsetOf(ids))
      throw trouble('previously allocated devices are no longer healthy');
    return healthy;
  }

  async #setAside(resource: string, ids: readonly string[], signal: AbortSignal): Promise<Uint8Array> {
    const { clock, observer } = this.#deps;
    const beganMs = clock.monotonicMs();
    try {
      return await this.#plugins.ask(resource, (plugin) => plugin.allocate(ids, signal), signal);
    } finally {
      observer.allocated(resource, clock.monotonicMs() - beganMs);
    }
  }

  async #preStart(allotment: Allotment, signal: AbortSignal): Promise<void> {
    const { resource } = allotment;
    if (!this.#table.needsPreStart(resource)) return;
    const ids = [...idsOf(allotment)];
    await this.#plugins.ask(resource, (plugin) => plugin.preStart(ids, signal), signal);
  }

  #listed(resource: string, before: ReadonlyMap<string, Device>): void {
    const now = new Map(this.#table.devices(resource).map((device) => [device.id, device]));
    const ids = [...new Set([...before.keys(), ...now.keys()])];
    const changed = ids.filter((id) => before.get(id)?.isHealthy !== now.get(id)?.isHealthy);
    for (const uid of this.#allotments.owners(resource, new Set(changed))) this.#deps.healthChanged(uid);
    this.#waits.told();
    this.#saveSoon();
  }

  #changed(): void {
    this.#planForgetting();
    this.#waits.told();
    this.#deps.changed();
  }

  /** What is not written now is with the next change. */
  #saveSoon(): void {
    this.#record
      .save()
      .catch((error: unknown) => this.#deps.logger.error('Who has which devices cannot be noted', error));
  }

  #planForgetting(): void {
    const { clock, changed, logger } = this.#deps;
    this.#forgetting?.cancel();
    this.#forgetting = undefined;
    const atMs = this.#table.nextPruneMs();
    if (atMs === undefined) return;
    this.#forgetting = clock.timer(Math.max(0, atMs - clock.monotonicMs()), () => {
      for (const resource of this.#table.prune())
        logger.info('The devices of a plugin that is gone are forgotten', { resource });
      this.#saveSoon();
      this.#planForgetting();
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
