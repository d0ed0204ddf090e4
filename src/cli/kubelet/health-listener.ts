import { type Clock, describeError, KubelingError } from '../../lib/index.ts';
import { isLoopbackAddress, Listener, type ListenerOptions, localGate } from '../../server/index.ts';

export interface HealthListenerOptions extends Pick<ListenerOptions, 'host' | 'port' | 'routes' | 'logger'> {
  readonly clock: Clock;
  /**
   * The node names that a client on loopback may use, besides the loopback names, in the Host and
   * Origin headers.
   */
  readonly names: readonly string[];
  /** Whether to retry or to run without the listener while its address is in use. */
  readonly whenPortInUse: 'retry' | 'do-without';
}

const retryMs = 5_000;

/**
 * Serves only the health endpoints, on the port where service supervisors expect them. The node
 * runs even if the address is in use.
 */
export class HealthListener implements AsyncDisposable {
  readonly #closed = new AbortController();
  #listener: Listener | undefined;
  #waiting: Promise<void> = Promise.resolve();

  static async open(given: HealthListenerOptions): Promise<HealthListener> {
    const gate = isLoopbackAddress(given.host) ? localGate(given.names) : undefined;
    const options = { ...given, gate };
    const health = new HealthListener();
    try {
      health.#listener = await Listener.open(options);
    } catch (error) {
      const { host, port, logger } = options;
      const because = describeError(error);
      if (options.whenPortInUse === 'do-without') {
        logger.warn('Serving health on the main port only', { host, port, because });
      } else {
        logger.error('Cannot serve health yet, retrying every 5s', error, { host, port });
        health.#waiting = health.#wait(options);
      }
    }
    return health;
  }

  /** The port of the listener; undefined while the address is in use. */
  get port(): number | undefined {
    return this.#listener?.port;
  }

  async close(): Promise<void> {
    this.#closed.abort(new KubelingError('CANCELLED', 'The server is closing'));
    await this.#waiting;
    await this.#listener?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #wait(options: HealthListenerOptions & ListenerOptions): Promise<void> {
    const { clock, host, port, logger } = options;
    const { signal } = this.#closed;
    try {
      await clock.sleep(retryMs, signal);
      this.#listener = await Listener.openWhenFree(options, { clock, everyMs: retryMs }, signal);
      logger.info('Serving health', { host, port });
    } catch (error) {
      if (!signal.aborted) logger.error('Not serving health', error, { host, port });
    }
  }
}
