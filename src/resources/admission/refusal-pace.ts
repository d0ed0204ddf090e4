import type { Clock } from '../../lib/index.ts';

/** This many at once, then one after each interval. */
const atOnce = 5;
const refillMs = 10_000;

/**
 * Limits the rate at which a node under pressure rejects pods: a controller that replaces each
 * rejected pod would fill the cluster with failed pods.
 */
export class RefusalPace {
  readonly #clock: Clock;
  #left = atOnce;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a pod may be rejected now; counts it. */
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
