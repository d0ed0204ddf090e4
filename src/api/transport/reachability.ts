import { type Clock, type Logger, TypedEvents } from '../../lib/index.ts';

/** One request that fails while others are answered says nothing about the server. */
const awayMs = 1_000;

/**
 * Whether the server can be reached, by what came of the requests of all clients. Whoever waits after failures can go on
 * as soon as anybody was answered, and need not find out by himself.
 */
export class Reachability {
  readonly #clock: Clock;
  readonly #events: TypedEvents<{ returned: undefined }>;
  /** When the first request failed since the last that was answered. */
  #failedMs: number | undefined;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#events = new TypedEvents((error) =>
      logger.error('Somebody who waits for the API server failed', error),
    );
  }

  /** There was no answer, or one that the server is in trouble. */
  failed(): void {
    this.#failedMs ??= this.#clock.monotonicMs();
  }

  answered(): void {
    const failedMs = this.#failedMs;
    if (failedMs === undefined) return;
    this.#failedMs = undefined;
    if (this.#clock.monotonicMs() - failedMs >= awayMs) this.#events.emit('returned', undefined);
  }

  onReturn(told: () => void): Disposable {
    return this.#events.on('returned', told);
  }
}
