import type { Clock } from '../../lib/index.ts';

/** So many at once, and then one each time this long has passed. */
const atOnce = 5;
const refillMs = 10_000;

/**
 * Lets a node that is short refuse only so many pods at once: whoever makes a new pod for each that was refused would
 * fill the cluster with what is left of them.
 */
export class RefusalPace {
  readonly #clock: Clock;
  #left = atOnce;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether one may be refused now; it counts then. */
  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const refilled = Math.floor((nowMs - this.#sinceMs) / refillMs);
    this.#left = Math.min(atOnce, this.#left + refilled);
    this.#sinceMs = this.#left === atOnce ? nowMs : this.#sinceMs + refilled * refillMs;
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }
}
