import { type Clock, describeError, KubelingError } from '../../lib/index.ts';
import { isLoopbackAddress, Listener, type ListenerOptions, localGate } from '../../server/index.ts';

export interface HealthListenerOptions extends Pick<ListenerOptions, 'host' | 'port' | 'routes' | 'logger'> {
  readonly clock: Clock;
  /** Names of the node that clients on loopback may use. */
  readonly names: readonly string[];
  /** What to do about an address that is taken: try again and again, or do without. */
  readonly whenPortInUse: 'retry' | 'do-without';
}

const retryMs = 5_000;

/**
 * Serves the health of the node, and nothing else, where supervisors look for it. An address that is taken keeps nobody
 * from running: one day it is free.
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
        logger.warn('Health is served on the main port only', { host, port, because });
      } else {
        logger.error('Cannot serve health yet; trying again every 5s', error, { host, port });
        health.#waiting = health.#wait(options);
      }
    }
    return health;
  }

  /** Undefined while the address cannot be had. */
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
      logger.info('Health is served now', { host, port });
    } catch (error) {
      if (!signal.aborted) logger.error('Health is not served', error, { host, port });
    }
  }
}
