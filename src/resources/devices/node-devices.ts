import { posix } from 'node:path';
import type { Container, Node, ResourceStatus } from '../../kinds/index.ts';
import { type Clock, type Logger, type MetricRegistry, type Random, Waiters } from '../../lib/index.ts';
import type { DeviceCapacity } from '../../node/index.ts';
import type { Plugin, PluginHandler } from '../../plugins/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import type { DeviceGrants, RuntimeFiles } from '../../runtime/index.ts';
import type { PodResourceAllocator, Rejection } from '../admission/index.ts';
import type { GivenResources } from '../pod-resources/index.ts';
import type { AllocationTerms, HintProvider, TopologyHints } from '../topology/index.ts';
import type { DeviceHost } from './device-host.ts';
import type { DeviceManager, DeviceManagerDeps } from './index.ts';
import { serveNodeSocket } from './node-socket.ts';

export interface NodeDevicesDeps
  extends Pick<
    DeviceManagerDeps,
    'mayUse' | 'isTerminating' | 'isRunningOrFinished' | 'changed' | 'numaNodes'
  > {
  readonly rootDir: string;
  readonly host: DeviceHost;
  readonly files: RuntimeFiles;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
}

/**
 * The devices that plugins offer on this node. A node without plugins only has a listening socket:
 * the device manager is loaded with the first plugin, or at the start when a checkpoint exists.
 */
export class NodeDevices implements PodResourceAllocator, HintProvider, PluginHandler, AsyncDisposable {
  readonly #deps: NodeDevicesDeps;
  readonly #directory: string;
  readonly #unhealthy = new Set<PodUid>();
  readonly #changes = new Waiters<void>();
  #loading: Promise<DeviceManager> | undefined;
  #manager: DeviceManager | undefined;

  constructor(deps: NodeDevicesDeps) {
    this.#deps = deps;
    this.#directory = posix.join(deps.rootDir, 'device-plugins');
  }

  /** Reads the checkpoint of previous kubelets; called before any pod is admitted. */
  async open(): Promise<void> {
    const names = await this.#deps.files.names(this.#directory);
    if (names.includes('kubelet_internal_checkpoint')) await this.#load();
  }

  /** Plugins can make themselves known as long as it runs. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#deps;
    await serveNodeSocket(
      {
        ...this.#deps,
        directory: this.#directory,
        fill: async (server) => {
          const { serveRegistration } = await import('./index.ts');
          serveRegistration(server, await this.#load(), logger);
        },
      },
      signal,
    );
  }

  /** Returns the next pod with a changed device health. */
  async next(signal: AbortSignal): Promise<string> {
    for (;;) {
      const [uid] = this.#unhealthy;
      if (uid !== undefined) {
        this.#unhealthy.delete(uid);
        return uid;
      }
      await this.#changes.wait(signal);
    }
  }

  async register(plugin: Plugin, signal: AbortSignal): Promise<void> {
    await (await this.#load()).register(plugin, signal);
  }

  deregister(plugin: Plugin): void {
    this.#manager?.deregister(plugin);
  }

  isRequestedBy(pod: Pod): boolean {
    return this.#manager?.isRequestedBy(pod) === true;
  }

  async allocatePod(pod: Pod, signal: AbortSignal): Promise<Rejection | undefined> {
    await this.ready(pod, signal);
    return await this.#manager?.allocatePod(pod, signal);
  }

  /** Waits for plugins that are expected, as long as that is worth while. */
  async ready(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#manager?.ready(pod, signal);
  }

  getTopologyHints(pod: Pod, container: Container): TopologyHints | undefined {
    return this.#manager?.getTopologyHints(pod, container);
  }

  getPodTopologyHints(pod: Pod): TopologyHints | undefined {
    return this.#manager?.getPodTopologyHints(pod);
  }

  async allocate(pod: Pod, container: Container, terms: AllocationTerms): Promise<undefined> {
    await this.#manager?.allocate(pod, container, terms);
  }

  /** What the container is given for its devices. */
  async grants(pod: Pod, container: Container, signal: AbortSignal): Promise<DeviceGrants | undefined> {
    return await this.#manager?.grants(pod, container, signal);
  }

  statusOf(uid: PodUid, container: string): readonly ResourceStatus[] {
    return this.#manager?.statusOf(uid, container) ?? [];
  }

  amounts(): DeviceCapacity {
    return this.#manager?.amounts() ?? { capacity: {}, allocatable: {}, removed: [] };
  }

  /** Whether nothing is known of devices that the machine had before. */
  get areForgotten(): boolean {
    return this.#manager?.hasCheckpoint !== true;
  }

  /** Adds the devices of the pod to the Node object, even if their plugin is disconnected. */
  nodeFor({ metadata: { uid } }: Pod, node: Node): Node {
    const manager = this.#manager;
    if (manager?.hasDevices(uid) !== true) return node;
    const { allocatable = {} } = node.status ?? {};
    const taken = [...manager.allocatedCounts()].filter(
      ([name, count]) => Number(allocatable[name] ?? 0) < count,
    );
    const raised = Object.fromEntries(taken.map(([name, count]) => [name, `${count}`]));
    return { ...node, status: { ...node.status, allocatable: { ...allocatable, ...raised } } };
  }

  /** What was given to whom, and all that can be. */
  given(): GivenResources['devices'] {
    return {
      of: (uid, container) => this.#manager?.devicesOf(uid, container) ?? [],
      allocatable: () => this.#manager?.allocatable() ?? [],
    };
  }

  /** Takes their devices from pods that cannot use them any more. */
  free(): void {
    this.#manager?.free();
  }

  /** How many pods have devices. */
  get size(): number {
    return this.#manager?.size ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#manager?.[Symbol.asyncDispose]();
  }

  async #load(): Promise<DeviceManager> {
    this.#loading ??= this.#make().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    return await this.#loading;
  }

  async #make(): Promise<DeviceManager> {
    const { DeviceManager, deviceMetrics } = await import('./index.ts');
    const manager = new DeviceManager({
      ...this.#deps,
      directory: this.#directory,
      observer: deviceMetrics(this.#deps.metrics),
      healthChanged: (uid) => {
        this.#unhealthy.add(uid);
        this.#changes.resolveAll();
      },
    });
    await manager.restore();
    this.#manager = manager;
    return manager;
  }
}
