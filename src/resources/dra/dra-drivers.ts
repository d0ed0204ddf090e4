import type { ServiceType } from '../../lib/grpc/index.ts';
import { type Clock, KubelingError, withDeadline } from '../../lib/index.ts';
import {
  type Claim,
  DRAPlugin,
  type DRAPluginMethods,
  type NodePrepareResourceResponse,
  type NodeUnprepareResourceResponse,
} from './gen/plugin.ts';

/** A plugin that has registered, as it says of itself. */
export interface DraPlugin {
  readonly name: string;
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** A connection to one; whoever opens it closes it. */
export interface DraChannel {
  client(service: ServiceType<DRAPluginMethods>): {
    nodePrepareResources(
      request: { claims: readonly Claim[] },
      options: CallOptions,
    ): Promise<{
      readonly claims: Readonly<Record<string, NodePrepareResourceResponse>>;
    }>;
    nodeUnprepareResources(
      request: { claims: readonly Claim[] },
      options: CallOptions,
    ): Promise<{
      readonly claims: Readonly<Record<string, NodeUnprepareResourceResponse>>;
    }>;
  };
  close(): void;
}

interface CallOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

export interface DraDriversDeps {
  readonly open: (socket: string) => DraChannel;
  readonly clock: Clock;
}

const callMs = 45_000;
/** The newest first; they differ in nothing but the name. */
const services: ReadonlyMap<string, ServiceType<DRAPluginMethods>> = new Map([
  ['v1.DRAPlugin', DRAPlugin],
  ['v1beta1.DRAPlugin', { ...DRAPlugin, fullName: 'k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin' }],
]);

interface Registered {
  readonly endpoint: string;
  readonly channel: DraChannel;
  readonly client: ReturnType<DraChannel['client']>;
}

/** Drivers of claims that have registered here. While one is replaced there may be two: the newer is asked. */
export class DraDrivers {
  readonly #deps: DraDriversDeps;
  readonly #registered = new Map<string, readonly Registered[]>();

  constructor(deps: DraDriversDeps) {
    this.#deps = deps;
  }

  async register({ name, endpoint, versions }: DraPlugin): Promise<void> {
    const service = [...services].find(([version]) => versions.includes(version))?.[1];
    if (service === undefined) {
      const known = [...services.keys()].join(', ');
      throw new KubelingError(
        'PLUGIN_REFUSED',
        `none of the DRA gRPC services are supported: the plugin has ${versions.join(', ')}, known are ${known}`,
      );
    }
    const channel = this.#deps.open(endpoint);
    const others = this.#without(name, endpoint);
    this.#registered.set(name, [...others, { endpoint, channel, client: channel.client(service) }]);
  }

  deregister({ name, endpoint }: DraPlugin): void {
    const left = this.#without(name, endpoint);
    if (left.length === 0) this.#registered.delete(name);
    else this.#registered.set(name, left);
  }

  /** Throws DRA_DRIVER when it is not here. */
  async prepare(driver: string, claims: readonly Claim[], signal: AbortSignal) {
    const { client } = this.find(driver);
    const call = (inner: AbortSignal) =>
      client.nodePrepareResources({ claims }, { signal: inner, timeoutMs: callMs });
    return (await this.#inTime('NodePrepareResources', call, signal)).claims;
  }

  async unprepare(driver: string, claims: readonly Claim[], signal: AbortSignal) {
    const { client } = this.find(driver);
    const call = (inner: AbortSignal) =>
      client.nodeUnprepareResources({ claims }, { signal: inner, timeoutMs: callMs });
    return (await this.#inTime('NodeUnprepareResources', call, signal)).claims;
  }

  find(driver: string): Registered {
    const newest = this.#registered.get(driver)?.at(-1);
    if (newest !== undefined) return newest;
    throw new KubelingError('DRA_DRIVER', `DRA driver ${driver} is not registered`);
  }

  #without(name: string, endpoint: string): readonly Registered[] {
    const all = this.#registered.get(name) ?? [];
    for (const one of all) if (one.endpoint === endpoint) one.channel.close();
    return all.filter((one) => one.endpoint !== endpoint);
  }

  #inTime<T>(method: string, call: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    return withDeadline(
      { clock: this.#deps.clock, ms: callMs, what: `have an answer to ${method}` },
      call,
      signal,
    );
  }
}
