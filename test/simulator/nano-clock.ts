import type { Clock } from '../../src/lib/index.ts';

const nanosPerMs = 1_000_000;

/**
 * The maximum offset: a tenth of a millisecond is enough for all events of one moment and too
 * little to matter.
 */
const largestSkew = 100_000n;

/** A clock with CRI timestamps: nanoseconds since 1970. */
export class NanoClock {
  readonly #clock: Clock;
  #skew = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Adds a growing offset to the clock, so that timestamps at the same moment differ and increase,
   * as on a real machine. Timestamps follow the wall clock when it is set back.
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
 * Formats a timestamp as RFC 3339 with as many digits as needed, at most nine, as in container
 * logs.
 */
export function formatNanos(nanos: bigint): string {
  const ms = Number(nanos / 1_000_000n);
  const fraction = (nanos % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '');
  const seconds = new Date(ms).toISOString().slice(0, 19);
  return fraction === '' ? `${seconds}Z` : `${seconds}.${fraction}Z`;
}
