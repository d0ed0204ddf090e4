import { type Clock, type Logger, TypedEvents } from '../../lib/index.ts';

/**
 * The minimum duration of an outage: a single failed request among successful ones does not mean
 * that the server is unreachable.
 */
const minOutageMs = 1_000;

/**
 * Tracks whether the server is reachable, from the requests of all clients, and notifies clients in
 * back-off of the first response after an outage.
 */
export class Reachability {
  readonly #clock: Clock;
  readonly #events: TypedEvents<{ returned: undefined }>;
  /** The time of the first failed request since the last response. */
  #failedMs: number | undefined;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#events = new TypedEvents((error) => logger.error('API recovery listener failed', error));
  }

  /** Records a request without a response, or with a server error. */
  failed(): void {
    this.#failedMs ??= this.#clock.monotonicMs();
  }

  succeeded(): void {
    const failedMs = this.#failedMs;
    if (failedMs === undefined) return;
    this.#failedMs = undefined;
    if (this.#clock.monotonicMs() - failedMs >= minOutageMs) this.#events.emit('returned', undefined);
  }

  onReturn(listener: () => void): Disposable {
    return this.#events.on('returned', listener);
  }
}
