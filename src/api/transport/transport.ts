import { type Clock, cancelled, describeError, type Logger } from '../../lib/index.ts';
import type { Access, Credentials } from '../credentials/credentials.ts';
import { Lane } from './connection-pool.ts';
import { type Environment, proxyFor } from './proxy.ts';
import { Reachability } from './reachability.ts';

export interface ConnectionPoolOptions {
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For HTTPS_PROXY, NO_PROXY and DISABLE_HTTP2. */
  readonly environment: Environment;
}

/** The connections to one API server, shared by its clients. */
export class ConnectionPool {
  readonly reachability: Reachability;
  readonly #options: ConnectionPoolOptions;
  readonly #closing = new AbortController();
  #lane: Lane | undefined;
  #access: Access | undefined;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.reachability = new Reachability(options.clock, options.logger);
  }

  /** Aborted when the pool is closed. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** The lane for the next request and what it is sent with. When the identity has changed, that closes the old lane. */
  async lane(signal: AbortSignal): Promise<{ readonly lane: Lane; readonly access: Access }> {
    this.closed.throwIfAborted();
    const access = await this.#options.credentials.current(signal);
    this.closed.throwIfAborted();
    return { lane: this.#laneFor(access), access };
  }

  /** Looks at all credentials now; when they have changed every old connection is closed. */
  reload(): void {
    this.#options.credentials.expire();
    this.lane(this.closed).catch((error) => {
      if (!this.closed.aborted)
        this.#options.logger.warn('Cannot reload credentials', { err: describeError(error) });
    });
  }

  /** The server refused these credentials; answers whether there are others by now. */
  async refused(access: Access, signal: AbortSignal): Promise<boolean> {
    this.#options.credentials.refused(access);
    return (await this.#options.credentials.current(signal)) !== access;
  }

  closeIdle(): void {
    this.#lane?.closeIdle();
  }

  closeSilent(): void {
    this.#lane?.closeIdle();
    this.#lane?.endSilentWatches();
  }

  /** Every connection there is, also of requests and watches under way; new ones are made as needed. */
  closeConnections(): void {
    this.#lane?.close();
    this.#lane = undefined;
  }

  close(): void {
    this.#closing.abort(cancelled('The client of the API server is closed'));
    this.closeConnections();
  }

  #laneFor(access: Access): Lane {
    const old = this.#access;
    const isSame = old?.identity === access.identity && old.context === access.context;
    if (this.#lane !== undefined && isSame) return this.#lane;
    if (this.#lane !== undefined) this.#options.logger.info('Credentials changed, closing old connections');
    const { clock, environment } = this.#options;
    const http2 = environment['DISABLE_HTTP2'] ? 'never' : 'where-offered';
    const lane = new Lane(access, { clock, proxy: proxyFor(access.context, environment), http2 });
    this.#lane?.retire();
    this.#access = access;
    this.#lane = lane;
    return lane;
  }
}
