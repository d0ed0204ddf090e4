import type { Clock } from '../lib/index.ts';

/** Nobody is to wait longer than this for what is done in one go. */
const longestMs = 2;

/** Work in many small parts that lets others come in between; under virtual time, where all takes no time, never. */
export class Turns {
  readonly #clock: Clock;
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** To be looked at between two parts. */
  get isOver(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= longestMs;
  }

  /** To be awaited when one is over. */
  async next(): Promise<void> {
    await new Promise<void>((resolve) => void setImmediate(resolve));
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
