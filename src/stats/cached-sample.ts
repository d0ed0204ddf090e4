import { type Clock, nextTurn, SingleFlight } from '../lib/index.ts';

/** The last sample of a periodically read value, shared by all callers. */
export class CachedSample<T> {
  readonly #clock: Clock;
  readonly #sample: (signal: AbortSignal) => Promise<T>;
  readonly #flights = new SingleFlight<'one', T>();
  #last: { readonly atMs: number; readonly value: T } | undefined;

  constructor(clock: Clock, sample: (signal: AbortSignal) => Promise<T>) {
    this.#clock = clock;
    this.#sample = sample;
  }

  /** Returns the last sample if it is good enough, or the result of a running or new read. */
  async get(isGood: (value: T, ageMs: number) => boolean, signal: AbortSignal): Promise<T> {
    return this.peek(isGood) ?? (await this.#flights.run('one', (inner) => this.#begin(inner), signal));
  }

  /** Returns the last sample if it is good enough. */
  peek(isGood: (value: T, ageMs: number) => boolean): T | undefined {
    const last = this.#last;
    if (last === undefined) return undefined;
    return isGood(last.value, this.#clock.monotonicMs() - last.atMs) ? last.value : undefined;
  }

  /** Drops the last sample. */
  forget(): void {
    this.#last = undefined;
  }

  /** The age of a sample counts from the start of its read. */
  async #begin(signal: AbortSignal): Promise<T> {
    const atMs = this.#clock.monotonicMs();
    const value = await this.#sample(signal);
    this.#last = { atMs, value };
    return value;
  }
}

/** The longest time without yielding. */
const longestMs = 2;

/**
 * Splits long work so that other tasks run in between; never yields under virtual time, which does
 * not advance.
 */
export class Yielder {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** Check between two parts of the work. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= longestMs;
  }

  /** Await when `isDue` is true. */
  async yield(): Promise<void> {
    await nextTurn();
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
