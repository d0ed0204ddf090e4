import type { Clock } from '../../src/lib/index.ts';

const nanosPerMs = 1_000_000;

/** A tenth of a millisecond: enough for all events of one moment, too little to matter. */
const largestSkew = 100_000n;

/** Time in the CRI's form: nanoseconds since 1970. */
export class NanoClock {
  readonly #clock: Clock;
  #skew = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Two timestamps read at one moment still differ, as on a real machine, so that the earlier event
   * has the smaller one. The offset is kept, so that the difference of two timestamps is never too
   * short. When the wall clock is set back, the timestamps follow.
   */
  now(): bigint {
    this.#skew = this.#skew >= largestSkew ? 0n : this.#skew + 1n;
    return nanosOf(this.#clock.now()) + this.#skew;
  }
}

export function nanosOf(ms: number): bigint {
  const whole = Math.floor(ms);
  return BigInt(whole) * BigInt(nanosPerMs) + BigInt(Math.floor((ms - whole) * nanosPerMs));
}

/**
 * RFC 3339 with the required number of digits, at most nine: the form of the timestamps in
 * container logs.
 */
export function formatNanos(nanos: bigint): string {
  const ms = Number(nanos / 1_000_000n);
  const fraction = (nanos % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '');
  const seconds = new Date(ms).toISOString().slice(0, 19);
  return fraction === '' ? `${seconds}Z` : `${seconds}.${fraction}Z`;
}
