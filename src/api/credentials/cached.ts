import { type Clock, describeError, type Logger } from '../../lib/index.ts';

export interface LoadedValue<T> {
  readonly value: T;
  /** How long the loaded value is fresh; the first read after that loads it again. */
  readonly forMs: number;
}

export interface ExpiringValueOptions<T> {
  /** What the value is, for log messages, for example "the token file". */
  readonly what: string;
  readonly read: (signal: AbortSignal) => Promise<LoadedValue<T>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** After a failed load, how long the old value is used before the next attempt. */
const retryMs = 10_000;

/**
 * A value that is loaded again when it expires. If that fails, the old value is used: files are
 * replaced in several steps, and a credential that was valid may still be. The failure is thrown
 * only if there is no value yet.
 */
export class ExpiringValue<T> {
  readonly #options: ExpiringValueOptions<T>;
  #last: { readonly value: T; readonly readMs: number } | undefined;
  #dueMs = 0;
  #reading = 0;

  constructor(options: ExpiringValueOptions<T>) {
    this.#options = options;
  }

  get isFresh(): boolean {
    return this.#last !== undefined && this.#options.clock.monotonicMs() < this.#dueMs;
  }

  /**
   * Returns the fresh value, and loads it when it has expired. Must not be called concurrently: the
   * owner serializes calls.
   */
  async get(signal: AbortSignal): Promise<T> {
    if (this.#last !== undefined && this.isFresh) return this.#last.value;
    const reading = ++this.#reading;
    try {
      const { value, forMs } = await this.#options.read(signal);
      const readMs = this.#options.clock.monotonicMs();
      this.#last = { value, readMs };
      // A value that was marked stale during its load expires immediately, because it may still be
      // the old one.
      this.#dueMs = reading === this.#reading ? readMs + forMs : 0;
      return value;
    } catch (error) {
      signal.throwIfAborted();
      return this.#useLast(error);
    }
  }

  /** Makes the next read load the value again, unless the value is younger than `minAgeMs`. */
  expire(minAgeMs = 0): void {
    const ageMs = this.#options.clock.monotonicMs() - (this.#last?.readMs ?? Number.NEGATIVE_INFINITY);
    if (ageMs < minAgeMs) return;
    this.#reading++;
    this.#dueMs = 0;
  }

  #useLast(error: unknown): T {
    if (this.#last === undefined) throw error;
    const { what, clock, logger } = this.#options;
    logger.warn(`Failed to reload ${what}, using the old value`, { err: describeError(error) });
    this.#dueMs = clock.monotonicMs() + retryMs;
    return this.#last.value;
  }
}
