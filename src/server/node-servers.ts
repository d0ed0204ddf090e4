import type { Logger } from '../lib/index.ts';
import type { Gate } from './auth/index.ts';
import type { HttpMetricFamilies } from './http-metrics.ts';
import { Listener } from './listener.ts';
import type { Route, UpgradeRoute } from './router.ts';
import { disabledRoute } from './router.ts';
import type { ServingTls } from './secure-server.ts';

export interface NodeServersOptions {
  readonly address: string;
  /** Port of the kubelet API with TLS; 0 for any free port. */
  readonly port: number;
  /** Port of the read-only server; undefined when it is disabled. */
  readonly readOnlyPort: number | undefined;
  /** All routes of the node, from which each server serves a subset. */
  readonly routes: readonly Route[];
  readonly upgrades: readonly UpgradeRoute[];
  /** Value of `enableDebuggingHandlers`. */
  readonly debugging: 'on' | 'off';
  readonly tls: ServingTls;
  readonly gate: Gate;
  readonly metrics?: HttpMetricFamilies | undefined;
  readonly logger: Logger;
}

/**
 * The servers for remote clients: one with TLS and authentication, and optionally the read-only one
 * without authentication.
 */
export class NodeServers implements AsyncDisposable {
  readonly #main: Listener;
  readonly #readOnly: Listener | undefined;

  /**
   * Opens the servers. Rejects with SERVER_LISTEN when one of them cannot listen, and closes the
   * other.
   */
  static async open(options: NodeServersOptions): Promise<NodeServers> {
    const { address: host, port, readOnlyPort, routes, logger, metrics, debugging } = options;
    const main = await Listener.open({
      host,
      port,
      logger,
      tls: options.tls,
      gate: options.gate,
      routes: debugging === 'on' ? routes : withoutDebugging(routes),
      upgrades: debugging === 'on' ? options.upgrades : [],
      metrics: metrics?.of('readwrite'),
    });
    if (readOnlyPort === undefined) return new NodeServers(main, undefined);
    const plain = { host, port: readOnlyPort, logger, metrics: metrics?.of('readonly') };
    const readOnly = await Listener.open({ ...plain, routes: readOnlyRoutes(routes) }).catch(
      async (error) => {
        await main.close();
        throw error;
      },
    );
    return new NodeServers(main, readOnly);
  }

  private constructor(main: Listener, readOnly: Listener | undefined) {
    this.#main = main;
    this.#readOnly = readOnly;
  }

  get port(): number {
    return this.#main.port;
  }

  get readOnlyPort(): number | undefined {
    return this.#readOnly?.port;
  }

  async close(): Promise<void> {
    await Promise.all([this.#main.close(), this.#readOnly?.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Paths that neither access a pod nor change the node. */
const openPaths = [
  '/healthz',
  '/healthz/',
  '/livez',
  '/livez/',
  '/readyz',
  '/readyz/',
  '/pods',
  '/stats/summary',
];
const debugPaths = ['/run/', '/exec/', '/attach/', '/portForward/', '/containerLogs/', '/runningpods/'];
const reading: readonly string[] = ['GET', 'HEAD'];

const debuggingDisabled: readonly Route[] = [...debugPaths, '/debug/pprof/', '/logs/'].map((path) =>
  disabledRoute(path, 'Debug endpoints are disabled.\n'),
);

/** Returns the routes that are served with `enableDebuggingHandlers` off. */
export function withoutDebugging(routes: readonly Route[]): readonly Route[] {
  return [...routes.filter(isOpen), ...debuggingDisabled];
}

/**
 * Returns the routes of the read-only port without authentication: the routes that are served with
 * `enableDebuggingHandlers` off, restricted to reading.
 */
export function readOnlyRoutes(routes: readonly Route[]): readonly Route[] {
  const open = routes.filter(isOpen).filter(({ path }) => !/^\/(?:livez|readyz)/.test(path));
  return [...open.map(onlyReading), ...debuggingDisabled];
}

function isOpen({ path }: Route): boolean {
  return openPaths.includes(path) || path === '/metrics' || path.startsWith('/metrics/');
}

function onlyReading(route: Route): Route {
  const methods =
    route.methods === 'any' ? reading : route.methods.filter((method) => reading.includes(method));
  return { ...route, methods, answer: (request, signal) => route.answer(request, signal) };
}
