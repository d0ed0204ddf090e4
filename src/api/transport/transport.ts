import { type Clock, cancelledError, describeError, type Logger } from '../../lib/index.ts';
import type { Access, Credentials } from '../credentials/credentials.ts';
import { ConnectionPool } from './connection-pool.ts';
import { type ProxyEnvironment, proxyFor } from './proxy.ts';
import { Reachability } from './reachability.ts';

export interface TransportOptions {
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Provides HTTPS_PROXY, NO_PROXY and DISABLE_HTTP2. */
  readonly environment: ProxyEnvironment;
}

/** The connections to one API server, shared by its clients. */
export class Transport {
  readonly reachability: Reachability;
  readonly #options: TransportOptions;
  readonly #closing = new AbortController();
  #pool: ConnectionPool | undefined;
  #access: Access | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.reachability = new Reachability(options.clock, options.logger);
  }

  /** The signal that aborts when the transport is closed. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Returns the current credentials and the pool for the next request. If the identity changed, the
   * old pool is retired.
   */
  async currentPool(
    signal: AbortSignal,
  ): Promise<{ readonly pool: ConnectionPool; readonly access: Access }> {
    this.closed.throwIfAborted();
    const access = await this.#options.credentials.current(signal);
    this.closed.throwIfAborted();
    return { pool: this.#poolFor(access), access };
  }

  /** Reloads all credentials; if they changed, every old connection is closed. */
  reload(): void {
    this.#options.credentials.expire();
    this.currentPool(this.closed).catch((error) => {
      if (!this.closed.aborted)
        this.#options.logger.warn('Failed to reload credentials', { err: describeError(error) });
    });
  }

  /** Reloads credentials that the server rejected; returns whether they changed. */
  async refused(access: Access, signal: AbortSignal): Promise<boolean> {
    this.#options.credentials.refused(access);
    return (await this.#options.credentials.current(signal)) !== access;
  }

  closeIdle(): void {
    this.#pool?.closeIdle();
  }

  closeSilent(): void {
    this.#pool?.closeIdle();
    this.#pool?.endSilentWatches();
  }

  /**
   * Closes every connection, also of requests and watches in flight; new ones are opened on demand.
   */
  closeConnections(): void {
    this.#pool?.close();
    this.#pool = undefined;
  }

  close(): void {
    this.#closing.abort(cancelledError('The client of the API server is closed'));
    this.closeConnections();
  }

  #poolFor(access: Access): ConnectionPool {
    const old = this.#access;
    const isSame = old?.identity === access.identity && old.context === access.context;
    if (this.#pool !== undefined && isSame) return this.#pool;
    if (this.#pool !== undefined) this.#options.logger.info('Credentials changed, closing old connections');
    const { clock, environment } = this.#options;
    const http2 = environment['DISABLE_HTTP2'] ? 'never' : 'if-offered';
    const pool = new ConnectionPool(access, { clock, proxy: proxyFor(access.context, environment), http2 });
    this.#pool?.retire();
    this.#access = access;
    this.#pool = pool;
    return pool;
  }
}
