import { type Clock, type Logger, runChecked } from '../../lib/index.ts';
import { Credentials } from '../credentials/credentials.ts';
import type { ExecDeps } from '../credentials/exec.ts';
import { hostApiFiles } from '../kubeconfig/files.ts';
import type { ApiFiles, KubeContext } from '../kubeconfig/kubeconfig.ts';
import type { ProxyEnvironment } from '../transport/proxy.ts';
import { rateLimitOf } from '../transport/rate-limit.ts';
import { Transport } from '../transport/transport.ts';
import { type CallLimits, type CallResult, RetryingCaller } from './calls.ts';
import type { ApiClient } from './client.ts';
import { WireClient } from './wire-client.ts';

export interface ApiConnectionOptions {
  /**
   * Loads the kubeconfig, for example `() => loadKubeconfig({ path, files: hostApiFiles })`. Called
   * at the first request and every five minutes.
   */
  readonly kubeconfig: () => Promise<KubeContext>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly userAgent: string;
  /** Provides HTTPS_PROXY and NO_PROXY, and is the environment of exec plugins. */
  readonly environment: ProxyEnvironment;
  readonly files?: ApiFiles;
  /** Runs an exec plugin. */
  readonly run?: ExecDeps['run'];
  /** Called after each attempt of a request, for metrics; must not throw. */
  readonly onCall?: (result: CallResult) => void;
  /** The size limit of a response; 64 MiB by default. */
  readonly longestBody?: number;
  /** The size limit of a watch event; 16 MiB by default. */
  readonly longestEvent?: number;
}

export interface ApiClientOptions extends ApiConnectionOptions {
  readonly limits: CallLimits;
}

/** Controls the connections that the clients share. */
export interface ApiConnections {
  /**
   * Reads kubeconfig, certificates and tokens again; if they changed, all old connections are
   * closed.
   */
  reload(): void;
  /** Closes idle connections: after a network change they may be broken without any error. */
  closeIdle(): void;
  /**
   * Closes idle connections and the watches without recent events, which then resume over new
   * connections.
   */
  closeSilent(): void;
  /**
   * Closes all connections, also those of requests and watches in flight; the clients continue with
   * new connections.
   */
  closeConnections(): void;
  /** Closes all connections permanently: calls in flight and later calls fail. */
  close(): void;
}

/** A client that can also read plain text, for example `/healthz`. */
export interface WireApiClient extends ApiClient {
  text(path: `/${string}`, signal: AbortSignal): Promise<string>;
}

/** Creates a client; the kubeconfig is read and connections are opened at the first request. */
export function createApiClient(options: ApiClientOptions): WireApiClient & ApiConnections {
  const pool = poolOf(options);
  return Object.assign(clientOn(pool, options, options.limits), connectionsOf(pool));
}

/** A client rate limit as in the kubelet configuration. */
export interface ClientRate {
  readonly qps: number;
  readonly burst: number;
}

export interface ApiClientsOptions extends ApiConnectionOptions {
  /** The rate limit of most requests, `kubeAPIQPS` and `kubeAPIBurst`: 50 and 100 by default. */
  readonly main: ClientRate;
  /** The rate limit of events, `eventRecordQPS` and `eventBurst`. */
  readonly events: ClientRate;
  /**
   * The deadline of heartbeats: the shorter of the node status frequency and the lease duration.
   */
  readonly heartbeatMs: number;
}

/** The clients of a node: no client can block another one, although they share connections. */
export interface ApiClients extends ApiConnections {
  readonly main: WireApiClient;
  readonly events: ApiClient;
  /** The client for the lease and the node status: no rate limit and a short deadline. */
  readonly heartbeat: ApiClient;
  /**
   * Changes the rates of the main and the event client. Rejects negative rates with CONFIG_INVALID.
   */
  setRates(rates: Pick<ApiClientsOptions, 'main' | 'events'>): void;
}

/**
 * Creates the clients of a node; the kubeconfig is read and connections are opened at the first
 * request. Rejects negative rates with CONFIG_INVALID.
 */
export function createApiClients(options: ApiClientsOptions): ApiClients {
  const pool = poolOf(options);
  const rateOf = ({ qps, burst }: ClientRate) => rateLimitOf(qps, burst);
  const main = clientOn(pool, options, { rate: rateOf(options.main), ...mainLimits });
  const events = clientOn(pool, options, { rate: rateOf(options.events), ...eventLimits });
  return {
    main,
    events,
    heartbeat: clientOn(pool, options, heartbeatLimits(options.heartbeatMs)),
    setRates(rates) {
      const [forMain, forEvents] = [rateOf(rates.main), rateOf(rates.events)];
      main.setRate(forMain);
      events.setRate(forEvents);
    },
    ...connectionsOf(pool),
  };
}

/** The attempt limit matches API servers, which abort a request after a minute. */
export const mainLimits = { tryMs: 60_000, callMs: 300_000, mostInFlight: 64 } as const;
/** The time limits of event requests are short because the event recorder itself retries. */
export const eventLimits = { tryMs: 30_000, callMs: 60_000, mostInFlight: 8 } as const;

export function heartbeatLimits(ms: number): CallLimits {
  return { rate: { kind: 'unlimited' }, tryMs: ms, callMs: ms, mostInFlight: 8 };
}

function poolOf(options: ApiConnectionOptions): Transport {
  const { clock, logger, environment, files = hostApiFiles, run = runChecked } = options;
  const credentials = new Credentials(options.kubeconfig, {
    clock,
    logger,
    files,
    exec: { run, environment },
  });
  return new Transport({ credentials, clock, logger, environment });
}

const mebibyte = 1024 * 1024;

function clientOn(pool: Transport, options: ApiConnectionOptions, limits: CallLimits): WireClient {
  const { clock, userAgent, onCall, longestBody = 64 * mebibyte, longestEvent = 16 * mebibyte } = options;
  const caller = new RetryingCaller({ transport: pool, clock, limits, userAgent, onCall });
  const { reachability } = pool;
  return new WireClient({ caller, clock, reachability, longestBody, longestEvent });
}

function connectionsOf(pool: Transport): ApiConnections {
  return {
    reload: () => pool.reload(),
    closeIdle: () => pool.closeIdle(),
    closeSilent: () => pool.closeSilent(),
    closeConnections: () => pool.closeConnections(),
    close: () => pool.close(),
  };
}
