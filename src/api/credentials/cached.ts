import { type Clock, describeError, type Logger } from '../../lib/index.ts';

export interface Fresh<T> {
  readonly value: T;
  /** From now on; it is asked for again after that. */
  readonly forMs: number;
}

export interface KeptOptions<T> {
  /** Names it in the log, such as "the token file". */
  readonly what: string;
  readonly read: (signal: AbortSignal) => Promise<Fresh<T>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long after a failure what was read before goes on being used without another try. */
const retryMs = 10_000;

/**
 * Something that is read again when it grows old. When that fails, what was read last goes on: files are replaced in
 * several steps, and a credential that was good may still be. Only who has nothing yet gets the failure.
 */
export class Kept<T> {
  readonly #options: KeptOptions<T>;
  #last: { readonly value: T; readonly readMs: number } | undefined;
  #dueMs = 0;
  #reading = 0;

  constructor(options: KeptOptions<T>) {
    this.#options = options;
  }

  get isFresh(): boolean {
    return this.#last !== undefined && this.#options.clock.monotonicMs() < this.#dueMs;
  }

  /** Not for two callers at once: whoever owns it reads in turn. */
  async get(signal: AbortSignal): Promise<T> {
    if (this.#last !== undefined && this.isFresh) return this.#last.value;
    const reading = ++this.#reading;
    try {
      const { value, forMs } = await this.#options.read(signal);
      const readMs = this.#options.clock.monotonicMs();
      this.#last = { value, readMs };
      // Told to look again while looking: what was read may be the old.
      this.#dueMs = reading === this.#reading ? readMs + forMs : 0;
      return value;
    } catch (error) {
      signal.throwIfAborted();
      return this.#goOn(error);
    }
  }

  /** Read it again at the next chance, unless it was read less than `youngerThanMs` ago. */
  expire(youngerThanMs = 0): void {
    const ageMs = this.#options.clock.monotonicMs() - (this.#last?.readMs ?? Number.NEGATIVE_INFINITY);
    if (ageMs < youngerThanMs) return;
    this.#reading++;
    this.#dueMs = 0;
  }

  #goOn(error: unknown): T {
    if (this.#last === undefined) throw error;
    const { what, clock, logger } = this.#options;
    logger.warn(`Cannot read ${what} again, going on with what it was`, { err: describeError(error) });
    this.#dueMs = clock.monotonicMs() + retryMs;
    return this.#last.value;
  }
}
