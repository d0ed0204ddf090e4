import type { Clock } from '../../src/lib/index.ts';

const nanosPerMs = 1_000_000;

/** A tenth of a millisecond: enough for all that happens at one moment, too little for anybody to notice. */
const largestSkew = 100_000n;

/** Time as CRI tells it: nanoseconds since 1970. */
export class NanoClock {
  readonly #clock: Clock;
  #skew = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Two readings at one moment still differ, as they do on a real machine, so that what happened first has the
   * smaller stamp. The difference stays, so that a time between two readings is never told too short. When an
   * administrator turns the clock back, the readings go back with it.
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

/** RFC 3339 with as many digits as there are, at most nine: the form of the timestamps in container logs. */
export function formatNanos(nanos: bigint): string {
  const ms = Number(nanos / 1_000_000n);
  const fraction = (nanos % 1_000_000_000n).toString().padStart(9, '0').replace(/0+$/, '');
  const seconds = new Date(ms).toISOString().slice(0, 19);
  return fraction === '' ? `${seconds}Z` : `${seconds}.${fraction}Z`;
}
