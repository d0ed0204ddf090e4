import type { Clock, Random } from '../lib/index.ts';

/**
 * When a status that did not change is told all the same. After a change, and at the start, by chance up to half the
 * period earlier or later, so that the nodes of a cluster do not all come at once; then at a steady pace.
 */
export class ReportTimer {
  readonly #periodMs: number;
  readonly #clock: Clock;
  readonly #random: Random;
  #dueMs: number | undefined;

  constructor(periodMs: number, clock: Clock, random: Random) {
    this.#periodMs = periodMs;
    this.#clock = clock;
    this.#random = random;
  }

  /** At once as long as nothing was reported. */
  isDue(): boolean {
    return this.#dueMs === undefined || this.#clock.monotonicMs() >= this.#dueMs;
  }

  reported(why: 'changed' | 'due'): void {
    const isFirst = this.#dueMs === undefined;
    const shiftMs = why === 'changed' || isFirst ? this.#periodMs * (this.#random.next() - 0.5) : 0;
    this.#dueMs = this.#clock.monotonicMs() + this.#periodMs + shiftMs;
  }
}
