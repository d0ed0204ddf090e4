import { posix } from 'node:path';
import { type Clock, onAbort } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { DeviceHost, OnDemand } from '../../src/resources/devices/device-host.ts';

export interface SimulatedDevice {
  readonly id: string;
  readonly health?: 'Healthy' | 'Unhealthy';
  readonly numaNodes?: readonly number[];
}

export interface PluginOptions {
  readonly preStartRequired?: boolean;
  readonly getPreferredAllocationAvailable?: boolean;
}

type Register = (
  request: { readonly version: string; readonly endpoint: string; readonly resourceName: string },
  options: { readonly signal: AbortSignal },
) => Promise<unknown>;

/**
 * A subscriber to the device list of a plugin: it gets each list, and finally the reason why the
 * stream ended.
 */
interface Listener {
  list(): void;
  end(error: Error | undefined): void;
}

const endless = new AbortController().signal;

/** A simulated device plugin, which keeps running across kubelet restarts. */
export class SimulatedPlugin {
  readonly resource: string;
  readonly endpoint: string;
  readonly calls: string[] = [];
  /** The errors of calls, by method. */
  readonly troubles = new Map<string, Error>();
  /** The duration of slow calls, by method. */
  readonly delaysMs = new Map<string, number>();
  /** The devices that GetPreferredAllocation prefers. */
  preferred: readonly string[] = [];
  devices: readonly SimulatedDevice[];
  state: 'there' | 'gone' = 'there';
  lives = 1;
  readonly #options: PluginOptions;
  readonly #clock: Clock;
  readonly #listeners = new Set<Listener>();

  constructor(
    clock: Clock,
    resource: string,
    devices: readonly SimulatedDevice[],
    options: PluginOptions = {},
  ) {
    this.#clock = clock;
    this.resource = resource;
    this.endpoint = `${resource.replaceAll('/', '-')}.sock`;
    this.devices = devices;
    this.#options = options;
  }

  tell(devices: readonly SimulatedDevice[]): void {
    this.devices = devices;
    for (const listener of [...this.#listeners]) listener.list();
  }

  /** Kills the plugin: its process has exited, and its socket is removed. */
  die(): void {
    this.state = 'gone';
    this.breakConnections();
  }

  /** Closes the connections of the plugin, which keeps running. */
  breakConnections(): void {
    for (const listener of [...this.#listeners])
      listener.end(new GrpcError('UNAVAILABLE', 'The connection was closed'));
  }

  /** Ends the device list streams from the plugin's side. */
  endLists(error: Error | undefined): void {
    for (const listener of [...this.#listeners]) listener.end(error);
  }

  comeBack(): void {
    this.state = 'there';
    this.lives++;
  }

  get isListenedTo(): number {
    return this.#listeners.size;
  }

  async call(method: string, request: object, signal: AbortSignal): Promise<object> {
    // Every response is delayed, at least to a later turn of the event loop.
    await this.#clock.sleep(this.delaysMs.get(method) ?? 1, signal);
    if (this.state === 'gone')
      throw new GrpcError('UNAVAILABLE', 'no process listens on the socket of the device plugin');
    this.calls.push(`${method} ${JSON.stringify(request)}`);
    const trouble = this.troubles.get(method);
    if (trouble !== undefined) throw trouble;
    switch (method) {
      case 'getDevicePluginOptions':
        return { preStartRequired: false, getPreferredAllocationAvailable: false, ...this.#options };
      case 'getPreferredAllocation':
        return { containerResponses: [{ deviceIDs: this.preferred }] };
      case 'allocate':
        return { containerResponses: [this.#response(request as AllocateCall)] };
      default:
        return {};
    }
  }

  async *listAndWatch(signal: AbortSignal): AsyncGenerator<object> {
    if (this.state === 'gone')
      throw new GrpcError('UNAVAILABLE', 'no process listens on the socket of the device plugin');
    this.calls.push('listAndWatch');
    const trouble = this.troubles.get('listAndWatch');
    if (trouble !== undefined) throw trouble;
    const lists: object[] = [this.#list()];
    let over: { readonly error: Error | undefined } | undefined;
    let wake = () => {};
    const listener: Listener = {
      list: () => {
        lists.push(this.#list());
        wake();
      },
      end: (error) => {
        over = { error };
        wake();
      },
    };
    this.#listeners.add(listener);
    using _link = onAbort(signal, () => listener.end(new GrpcError('CANCELLED', 'the call was aborted')));
    try {
      for (;;) {
        const next = lists.shift();
        if (next !== undefined) yield next;
        else if (over !== undefined) break;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
      if (over.error !== undefined) throw over.error;
    } finally {
      this.#listeners.delete(listener);
    }
  }

  #list(): object {
    const devices = this.devices.map(({ id, health = 'Healthy', numaNodes = [] }) => ({
      ID: id,
      health,
      topology: { nodes: numaNodes.map((node) => ({ ID: BigInt(node) })) },
    }));
    return { devices };
  }

  #response({ containerRequests: [first] }: AllocateCall): object {
    const sorted = [...(first?.devicesIds ?? [])].toSorted();
    const ids = sorted.join(',');
    return {
      envs: { [this.resource]: ids },
      mounts: [],
      devices: [],
      annotations: { [this.resource]: ids },
      cdiDevices: sorted.map((id) => ({ name: `${this.resource}=${id}` })),
    };
  }
}

interface AllocateCall {
  readonly containerRequests: readonly { readonly devicesIds: readonly string[] }[];
}

/** Simulates the sockets of device plugins, and that of the current kubelet. */
export class SimulatedDevices implements DeviceHost {
  readonly #clock: Clock;
  readonly #plugins = new Map<string, SimulatedPlugin>();
  #directory = '';
  #register: Register | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(resource: string, devices: readonly SimulatedDevice[], options?: PluginOptions): SimulatedPlugin {
    const plugin = new SimulatedPlugin(this.#clock, resource, devices, options);
    this.#plugins.set(plugin.endpoint, plugin);
    return plugin;
  }

  get plugins(): readonly SimulatedPlugin[] {
    return [...this.#plugins.values()];
  }

  /**
   * Registers a plugin, as it does when it detects the kubelet's socket. Rejects with the kubelet's
   * error.
   */
  async register({ endpoint, resource }: SimulatedPlugin): Promise<void> {
    const register = this.#register;
    if (register === undefined) throw new GrpcError('UNAVAILABLE', 'no kubelet is running');
    await register({ version: 'v1beta1', endpoint, resourceName: resource }, { signal: endless });
  }

  async clear(directory: string): Promise<void> {
    if (posix.basename(directory) === 'device-plugins') this.#directory = directory;
  }

  async serve(socket: string, { fill }: OnDemand): Promise<AsyncDisposable> {
    // The PodResources API is not used here.
    if (posix.dirname(socket) !== this.#directory) return { [Symbol.asyncDispose]: async () => {} };
    const loaded = async () => {
      let found: Register | undefined;
      await fill({
        add: (_service, implementation) => {
          found = (implementation as unknown as { readonly register: Register }).register;
        },
      });
      return found;
    };
    const register: Register = async (request, options) => await (await loaded())?.(request, options);
    this.#register = register;
    // All running plugins detect the new socket of the kubelet.
    for (const plugin of this.#plugins.values())
      if (plugin.state === 'there') void this.register(plugin).catch(() => {});
    return {
      [Symbol.asyncDispose]: async () => {
        if (this.#register === register) this.#register = undefined;
      },
    };
  }

  open(socket: string) {
    const plugin = () => {
      const found = this.#plugins.get(posix.relative(this.#directory, socket));
      if (found === undefined) throw new GrpcError('UNAVAILABLE', `no process listens at ${socket}`);
      return found;
    };
    const end = new AbortController();
    const client = new Proxy(
      {},
      {
        get: (_target, method: string) =>
          method === 'listAndWatch'
            ? (_request: object, { signal }: { readonly signal: AbortSignal }) =>
                plugin().listAndWatch(signal)
            : async (request: object, { signal }: { readonly signal: AbortSignal }) =>
                await plugin().call(method, request, AbortSignal.any([signal, end.signal])),
      },
    );
    const close = () => end.abort(new GrpcError('UNAVAILABLE', 'The connection was closed'));
    return { client: () => client as never, close };
  }

  identity(socket: string): string | undefined {
    const found = this.#plugins.get(posix.relative(this.#directory, socket));
    return found?.state === 'there' ? `${found.lives}` : undefined;
  }
}
