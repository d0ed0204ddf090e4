import { type Clock, nextTurn, SingleFlight } from '../lib/index.ts';

/** Caches the last sample of a periodically read value for all callers. */
export class CachedSample<T> {
  readonly #clock: Clock;
  readonly #sample: (signal: AbortSignal) => Promise<T>;
  readonly #flights = new SingleFlight<'one', T>();
  #last: { readonly atMs: number; readonly value: T } | undefined;

  constructor(clock: Clock, sample: (signal: AbortSignal) => Promise<T>) {
    this.#clock = clock;
    this.#sample = sample;
  }

  /**
   * Returns the last sample if `isGood` accepts it, otherwise the result of a running or new read.
   */
  async get(isGood: (value: T, ageMs: number) => boolean, signal: AbortSignal): Promise<T> {
    return this.peek(isGood) ?? (await this.#flights.run('one', (inner) => this.#begin(inner), signal));
  }

  /** Returns the last sample if `isGood` accepts it, otherwise undefined. */
  peek(isGood: (value: T, ageMs: number) => boolean): T | undefined {
    const last = this.#last;
    if (last === undefined) return undefined;
    return isGood(last.value, this.#clock.monotonicMs() - last.atMs) ? last.value : undefined;
  }

  /** Drops the cached sample. */
  forget(): void {
    this.#last = undefined;
  }

  /** Reads a new sample; its age counts from the start of the read. */
  async #begin(signal: AbortSignal): Promise<T> {
    const atMs = this.#clock.monotonicMs();
    const value = await this.#sample(signal);
    this.#last = { atMs, value };
    return value;
  }
}

/** Maximum time in milliseconds without yielding. */
const longestMs = 2;

/**
 * Splits long-running work so that other tasks can run in between; never yields in virtual time,
 * which does not advance during work.
 */
export class Yielder {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Whether it is time to yield; checked between two parts of the work. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= longestMs;
  }

  /** Lets other tasks run; call it when `isDue` is true. */
  async yield(): Promise<void> {
    await nextTurn();
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
