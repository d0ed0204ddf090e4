import { type Clock, isKind, KubelingError, withDeadline } from '../../lib/index.ts';
import {
  codeText,
  describeCallError,
  type GrpcCode,
  GrpcError,
  type ServiceType,
} from '../../protocols/grpc/index.ts';
import {
  type Claim,
  DRAPlugin,
  type DRAPluginMethods,
  type NodePrepareResourceResponse,
  type NodeUnprepareResourceResponse,
} from './gen/plugin.ts';
import type { DraObserver } from './metrics.ts';

/** A registered DRA driver. */
export interface DraPlugin {
  readonly name: string;
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** A gRPC connection to a driver; the caller closes it. */
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
  readonly observer?: Pick<DraObserver, 'called'> | undefined;
}

const callMs = 45_000;
/**
 * The supported versions of the DRA service, newest first; they differ only in the service name.
 */
const services: ReadonlyMap<string, ServiceType<DRAPluginMethods>> = new Map([
  ['v1.DRAPlugin', DRAPlugin],
  ['v1beta1.DRAPlugin', { ...DRAPlugin, fullName: 'k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin' }],
]);

interface Registered {
  readonly endpoint: string;
  /** The full gRPC service name. */
  readonly service: string;
  readonly channel: DraChannel;
  readonly client: ReturnType<DraChannel['client']>;
}

/**
 * The registered DRA drivers. During a rolling update a driver may be registered twice; then the
 * newer registration is used.
 */
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
        `none of the DRA gRPC services are supported: the plugin has ${versions.join(', ')}, supported are ${known}`,
      );
    }
    const channel = this.#deps.open(endpoint);
    const others = this.#without(name, endpoint);
    const client = channel.client(service);
    this.#registered.set(name, [...others, { endpoint, service: service.fullName, channel, client }]);
  }

  deregister({ name, endpoint }: DraPlugin): void {
    const left = this.#without(name, endpoint);
    if (left.length === 0) this.#registered.delete(name);
    else this.#registered.set(name, left);
  }

  /** Calls the driver. Throws DRA_DRIVER if the driver is not registered or the call fails. */
  async prepare(driver: string, claims: readonly Claim[], signal: AbortSignal) {
    const ask = ({ client }: Registered, inner: AbortSignal) =>
      client.nodePrepareResources({ claims }, { signal: inner, timeoutMs: callMs });
    return (await this.#call(driver, 'NodePrepareResources', ask, signal)).claims;
  }

  async unprepare(driver: string, claims: readonly Claim[], signal: AbortSignal) {
    const ask = ({ client }: Registered, inner: AbortSignal) =>
      client.nodeUnprepareResources({ claims }, { signal: inner, timeoutMs: callMs });
    return (await this.#call(driver, 'NodeUnprepareResources', ask, signal)).claims;
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

  async #call<T>(
    driver: string,
    method: string,
    ask: (one: Registered, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { clock, observer } = this.#deps;
    const one = this.find(driver);
    const startMs = clock.monotonicMs();
    const tell = (code: GrpcCode) => {
      const ms = clock.monotonicMs() - startMs;
      observer?.called(driver, `/${one.service}/${method}`, codeText(code), ms);
    };
    const deadline = { clock, ms: callMs, what: `have an answer to ${method}` };
    try {
      const answer = await withDeadline(deadline, (inner) => ask(one, inner), signal);
      tell('OK');
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      tell(codeOf(error));
      throw new KubelingError('DRA_DRIVER', `${method}: ${describeCallError(error)}`, { cause: error });
    }
  }
}

function codeOf(error: unknown): GrpcCode {
  if (error instanceof GrpcError) return error.grpcCode;
  return isKind(error, 'DeadlineExceeded') ? 'DEADLINE_EXCEEDED' : 'UNKNOWN';
}
