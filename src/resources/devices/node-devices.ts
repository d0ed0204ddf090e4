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
 * The devices of device plugins on this node. A node without plugins only has a listening socket:
 * the device manager is loaded when the first plugin registers, or at startup when a checkpoint
 * exists.
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

  /** Reads the device checkpoint of previous kubelets; called before any pod is admitted. */
  async open(): Promise<void> {
    const names = await this.#deps.files.names(this.#directory);
    if (names.includes('kubelet_internal_checkpoint')) await this.#load();
  }

  /** Serves the registration socket for device plugins until the signal is aborted. */
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

  /** Resolves with the UID of the next pod whose devices changed their health. */
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

  /** Waits for a limited time for the plugins whose devices the pod requests. */
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

  /**
   * Returns the run options for the allocated devices of the container, such as device nodes,
   * mounts and environment variables.
   */
  async grants(pod: Pod, container: Container, signal: AbortSignal): Promise<DeviceGrants | undefined> {
    return await this.#manager?.grants(pod, container, signal);
  }

  statusOf(uid: PodUid, container: string): readonly ResourceStatus[] {
    return this.#manager?.statusOf(uid, container) ?? [];
  }

  amounts(): DeviceCapacity {
    return this.#manager?.amounts() ?? { capacity: {}, allocatable: {}, removed: [] };
  }

  /** Whether no checkpoint of earlier device allocations exists. */
  get areForgotten(): boolean {
    return this.#manager?.hasCheckpoint !== true;
  }

  /**
   * Returns the Node object. If the pod has devices, allocatable includes at least these devices,
   * even if their plugin is disconnected.
   */
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

  /** Returns the allocated devices of each container, and all allocatable devices. */
  given(): GivenResources['devices'] {
    return {
      of: (uid, container) => this.#manager?.devicesOf(uid, container) ?? [],
      allocatable: () => this.#manager?.allocatable() ?? [],
    };
  }

  /** Releases the devices of terminated pods. */
  free(): void {
    this.#manager?.free();
  }

  /** The number of pods with allocated devices. */
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
