import { type Clock, type DeadlineOptions, isKind, KubelingError, withDeadline } from '../../lib/index.ts';
import { describeCallError, GrpcError } from '../../protocols/grpc/index.ts';
import type { DeviceChannel, DeviceHost } from './device-host.ts';
import { type Device, readDevices } from './device-table.ts';
import { ContainerAllocateResponse, DevicePlugin, type DevicePluginOptions } from './gen/device-plugin.ts';
import type { PreferredAllocationRequest } from './topology-hints.ts';

export interface ConnectionDeps {
  readonly host: Pick<DeviceHost, 'open' | 'identity'>;
  readonly clock: Clock;
}

const dialMs = 10_000;
const dialPauseMs = 250;
/** The deadline of Allocate: a plugin may reset a device before it responds. */
const allocateMs = 120_000;
const preferredMs = 30_000;
const preStartMs = 30_000;

export interface PluginAddress {
  readonly resource: string;
  readonly socket: string;
  /** The deadline for connecting to a plugin. */
  readonly withinMs?: number;
}

/** A connection to the plugin of one resource. */
export class PluginConnection implements Disposable {
  readonly resource: string;
  readonly socket: string;
  readonly options: DevicePluginOptions;
  /** The identity of the plugin's socket file when the connection was opened. */
  readonly identity: string | undefined;
  readonly #deps: ConnectionDeps;
  readonly #channel: DeviceChannel;
  readonly #end = new AbortController();

  private constructor(
    deps: ConnectionDeps,
    { resource, socket }: PluginAddress,
    channel: DeviceChannel,
    options: DevicePluginOptions,
  ) {
    this.#deps = deps;
    this.resource = resource;
    this.socket = socket;
    this.options = options;
    this.#channel = channel;
    this.identity = deps.host.identity(socket);
  }

  /**
   * Connects to the plugin. Throws DEVICE_PLUGIN if it is unreachable or does not return its
   * options.
   */
  static async open(
    deps: ConnectionDeps,
    { resource, socket, withinMs = dialMs }: PluginAddress,
    signal: AbortSignal,
  ): Promise<PluginConnection> {
    const channel = deps.host.open(socket);
    try {
      const options = await askOptions(
        channel,
        { clock: deps.clock, ms: withinMs, what: 'reach the plugin' },
        signal,
      );
      return new PluginConnection(deps, { resource, socket }, channel, options);
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  get isClosed(): boolean {
    return this.#end.signal.aborted;
  }

  /**
   * Delivers each device list until the stream ends. Never rejects; resolves with whether the
   * plugin itself ended the stream.
   */
  async follow(told: (devices: ReadonlyMap<string, Device>) => void): Promise<'ended' | 'lost'> {
    const { signal } = this.#end;
    try {
      for await (const { devices } of this.#channel.client(DevicePlugin).listAndWatch({}, { signal })) {
        if (signal.aborted) break;
        told(readDevices(devices));
      }
      return 'ended';
    } catch (error) {
      return error instanceof GrpcError && !error.isFromPeer && error.grpcCode === 'UNAVAILABLE'
        ? 'lost'
        : 'ended';
    }
  }

  /** Calls Allocate; returns the encoded response of the plugin. */
  async allocate(ids: readonly string[], signal: AbortSignal): Promise<Uint8Array> {
    const request = { containerRequests: [{ devicesIds: ids }] };
    const { containerResponses } = await this.#call(
      { what: 'have devices set aside', ms: allocateMs, failed: '' },
      (inner) => this.#channel.client(DevicePlugin).allocate(request, { signal: inner }),
      signal,
    );
    const [response] = containerResponses;
    if (response === undefined)
      throw new KubelingError('DEVICE_PLUGIN', 'no containers return in allocation response');
    return ContainerAllocateResponse.encode(response);
  }

  /** Returns the devices that the plugin prefers; empty for a plugin without preferences. */
  async preferred(question: PreferredAllocationRequest, signal: AbortSignal): Promise<readonly string[]> {
    if (!this.options.getPreferredAllocationAvailable) return [];
    const { available, mustInclude, size } = question;
    const one = {
      availableDeviceIDs: available,
      mustIncludeDeviceIDs: mustInclude,
      allocationSize: size,
    };
    const failed = 'device plugin GetPreferredAllocation rpc failed with err: ';
    const { containerResponses } = await this.#call(
      { what: 'know which devices are best', ms: preferredMs, failed },
      (inner) =>
        this.#channel
          .client(DevicePlugin)
          .getPreferredAllocation({ containerRequests: [one] }, { signal: inner }),
      signal,
    );
    return containerResponses[0]?.deviceIDs ?? [];
  }

  /** Calls PreStartContainer; does nothing if the plugin does not require the call. */
  async preStart(ids: readonly string[], signal: AbortSignal): Promise<void> {
    if (!this.options.preStartRequired) return;
    const failed = 'device plugin PreStartContainer rpc failed with err: ';
    await this.#call(
      { what: 'have devices made ready', ms: preStartMs, failed },
      (inner) => this.#channel.client(DevicePlugin).preStartContainer({ devicesIds: ids }, { signal: inner }),
      signal,
    );
  }

  /** Closes the connection and aborts its calls in flight. */
  [Symbol.dispose](): void {
    this.#end.abort(new KubelingError('CANCELLED', 'The connection to the plugin was closed'));
    this.#channel.close();
  }

  async #call<Answer>(
    { what, ms, failed }: { readonly what: string; readonly ms: number; readonly failed: string },
    work: (signal: AbortSignal) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer> {
    try {
      return await withDeadline({ clock: this.#deps.clock, ms, what }, work, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw pluginError(failed, error);
    }
  }
}

/** Retries the connection, because a plugin may register before it listens on its socket. */
async function askOptions(
  channel: DeviceChannel,
  deadline: DeadlineOptions,
  signal: AbortSignal,
): Promise<DevicePluginOptions> {
  const ask = async (inner: AbortSignal): Promise<DevicePluginOptions> => {
    for (;;) {
      try {
        return await channel.client(DevicePlugin).getDevicePluginOptions({}, { signal: inner });
      } catch (error) {
        const isAway = error instanceof GrpcError && !error.isFromPeer && error.grpcCode === 'UNAVAILABLE';
        if (!isAway) throw error;
        await deadline.clock.sleep(dialPauseMs, inner);
      }
    }
  };
  try {
    return await withDeadline(deadline, ask, signal);
  } catch (error) {
    signal.throwIfAborted();
    const isAway = isKind(error, 'DeadlineExceeded');
    throw pluginError(
      isAway ? 'failed to dial device plugin: ' : 'failed to get device plugin options: ',
      error,
    );
  }
}

/** Creates an error in the format of the Go kubelet. */
function pluginError(failed: string, error: unknown): KubelingError {
  return new KubelingError('DEVICE_PLUGIN', `${failed}${describeCallError(error)}`, { cause: error });
}
