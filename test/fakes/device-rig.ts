import type { Container } from '../../src/kinds/index.ts';
import { collectLogs, seededRandom } from '../../src/lib/index.ts';
import { type Pod, type PodUid, podUid } from '../../src/pods/index.ts';
import { allocateFromProviders } from '../../src/resources/admission/allocate-from-providers.ts';
import { DeviceManager } from '../../src/resources/devices/device-manager.ts';
import { serveRegistration } from '../../src/resources/devices/plugin-registration.ts';
import type { TopologyHint } from '../../src/resources/topology/index.ts';
import { mapFileStore, memoryRuntimeFiles } from './memory-runtime-files.ts';
import { aPod } from './pods.ts';
import { SimulatedDevices, type SimulatedPlugin } from './simulated-devices.ts';
import { VirtualClock } from './virtual-clock.ts';

export const directory = '/var/lib/kubelet/device-plugins';
export const checkpointPath = `${directory}/kubelet_internal_checkpoint`;
export const { signal } = new AbortController();

/** A machine with device plugins that keep running across restarts of the device manager. */
export class DeviceRig implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly host = new SimulatedDevices(this.clock);
  readonly store = mapFileStore();
  readonly logs = collectLogs(this.clock);
  readonly ended = new Set<PodUid>();
  /** Pods that were requested to stop, and whose containers still run. */
  readonly ending = new Set<PodUid>();
  readonly served = new Set<string>();
  readonly unwell: PodUid[] = [];
  readonly registered: string[] = [];
  changes = 0;
  numaNodes: readonly number[] | undefined;
  manager: DeviceManager = this.#make();
  #server: AsyncDisposable | undefined;

  /** Starts the device manager like a starting kubelet. */
  async start(): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    this.manager = this.#make();
    await this.manager.restore();
    await this.host.clear(directory);
    const { manager } = this;
    this.#server = await this.host.serve(`${directory}/kubelet.sock`, {
      fill: async (server) => serveRegistration(server, manager, this.logs.logger),
      failed: (_path, error) => {
        throw error;
      },
    });
    await this.clock.advance(100);
  }

  /** Starts the device manager while this plugin is registered. */
  async startWith(...args: Parameters<SimulatedDevices['add']>): Promise<SimulatedPlugin> {
    const plugin = this.host.add(...args);
    await this.start();
    return plugin;
  }

  /**
   * Allocates devices as at admission and advances the clock until the allocation has completed;
   * returns the reason of a rejection.
   */
  async admit(pod: Pod, affinity?: TopologyHint): Promise<string | undefined> {
    const near = (hint: TopologyHint) => ({
      allocate: (of: Pod, container: Container) =>
        this.manager.allocate(of, container, { affinity: hint, signal }),
    });
    const { metadata } = pod;
    const refusal = await this.pass(
      affinity === undefined
        ? this.manager.allocatePod(pod, signal)
        : allocateFromProviders(pod, [near(affinity)], signal),
    );
    if (refusal !== undefined) this.ended.add(metadata.uid);
    return refusal?.message;
  }

  /** Advances the clock until the promise settles. */
  async pass<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const done = () => {
      isOver = true;
    };
    work.then(done, done);
    for (let steps = 0; !isOver && steps < 1_000; steps++) await this.clock.advance(1);
    return await work;
  }

  /** Returns the devices of a container, sorted. */
  devicesOf(pod: Pod, container = 'main'): readonly string[] {
    return this.manager
      .devicesOf(pod.metadata.uid, container)
      .map(({ id }) => id)
      .toSorted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    await this.manager[Symbol.asyncDispose]();
  }

  #make(): DeviceManager {
    return new DeviceManager({
      directory,
      host: this.host,
      files: memoryRuntimeFiles(this.store),
      clock: this.clock,
      random: seededRandom(1),
      logger: this.logs.logger,
      observer: { registered: (resource) => this.registered.push(resource), allocated: () => {} },
      numaNodes: this.numaNodes,
      mayUse: (uid) => !this.ended.has(uid),
      isTerminating: (uid) => this.ending.has(uid),
      isRunningOrFinished: (pod, { name }) => this.served.has(`${pod.metadata.uid} ${name}`),
      changed: () => {
        this.changes++;
      },
      healthChanged: (uid) => this.unwell.push(uid),
    });
  }
}

export const gadget = 'example.com/gadget';

export function container(name: string, count: number, more: Partial<Container> = {}): Container {
  return { name, image: 'i', resources: { limits: { [gadget]: `${count}`, cpu: '1' } }, ...more };
}

/** Builds a pod with one container that requests this many devices. */
export function podOf(name: string, count: number): Pod {
  return aPod({ metadata: { uid: podUid(name), name }, spec: { containers: [container('main', count)] } });
}
