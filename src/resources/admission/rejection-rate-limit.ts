import type { Clock } from '../../lib/index.ts';

/** How many pods may be rejected in a burst; afterwards one per interval. */
const burst = 5;
const refillMs = 10_000;

/**
 * Limits the rate at which a node under pressure rejects pods: a controller that replaces each
 * rejected pod would otherwise fill the cluster with failed pods.
 */
export class RejectionRateLimit {
  readonly #clock: Clock;
  #left = burst;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether a pod may be rejected for node pressure now; counts the rejection. */
  tryAcquire(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const refilled = Math.floor((nowMs - this.#sinceMs) / refillMs);
    this.#left = Math.min(burst, this.#left + refilled);
    this.#sinceMs = this.#left === burst ? nowMs : this.#sinceMs + refilled * refillMs;
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }
}
