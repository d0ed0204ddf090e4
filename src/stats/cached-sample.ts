import { type Clock, SingleFlight } from '../lib/index.ts';

/** The last of something that is found out again and again, shared by all who ask. */
export class CachedSample<T> {
  readonly #clock: Clock;
  readonly #take: (signal: AbortSignal) => Promise<T>;
  readonly #flights = new SingleFlight<'one', T>();
  #last: { readonly atMs: number; readonly value: T } | undefined;

  constructor(clock: Clock, take: (signal: AbortSignal) => Promise<T>) {
    this.#clock = clock;
    this.#take = take;
  }

  /** One that is good enough, or the one under way, or a new one. */
  async get(isGood: (value: T, ageMs: number) => boolean, signal: AbortSignal): Promise<T> {
    return this.peek(isGood) ?? (await this.#flights.run('one', (inner) => this.#begin(inner), signal));
  }

  /** The last one, if it is good enough. */
  peek(isGood: (value: T, ageMs: number) => boolean): T | undefined {
    const last = this.#last;
    if (last === undefined) return undefined;
    return isGood(last.value, this.#clock.monotonicMs() - last.atMs) ? last.value : undefined;
  }

  /** Somebody knows that it is no longer so. */
  forget(): void {
    this.#last = undefined;
  }

  /** As old as its beginning. */
  async #begin(signal: AbortSignal): Promise<T> {
    const atMs = this.#clock.monotonicMs();
    const value = await this.#take(signal);
    this.#last = { atMs, value };
    return value;
  }
}

/** Nobody is to wait longer than this for what is done in one go. */
const longestMs = 2;

/** Work in many small parts that lets others come in between; under virtual time, where all takes no time, never. */
export class Yielder {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** To be looked at between two parts. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= longestMs;
  }

  /** To be awaited when one is over. */
  async yield(): Promise<void> {
    await new Promise<void>((resolve) => void setImmediate(resolve));
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
