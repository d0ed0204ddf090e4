import type { Clock } from '../../lib/index.ts';

export interface RateLimits {
  /** 0 for any number. */
  readonly qps: number;
  readonly burst: number;
}

/** A bucket that fills with `qps` a second up to `burst`. */
export class PullRate {
  readonly #limits: RateLimits;
  readonly #clock: Clock;
  #tokens: number;
  #lastMs: number;

  constructor(limits: RateLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#tokens = limits.burst;
    this.#lastMs = clock.monotonicMs();
  }

  take(): boolean {
    const { qps, burst } = this.#limits;
    if (qps <= 0) return true;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#lastMs) / 1_000) * qps);
    this.#lastMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
