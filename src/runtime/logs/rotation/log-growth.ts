/** The minimum interval between checks of a log. */
const minMs = 100;
/** The time from the first to the second check of a log. */
const firstMs = 1_000;

export interface GrowthLimits {
  /** The size at which the log is full. */
  readonly maxBytes: number;
  /** The maximum interval between checks of a log. */
  readonly maxMs: number;
}

/**
 * Computes when to check a log again: when it is expected to be full, and less often while it does
 * not grow.
 */
export class LogGrowth {
  readonly #limits: GrowthLimits;
  #last: { readonly bytes: number; readonly atMs: number };
  #waitMs: number;
  #bytesPerMs = 0;

  constructor(limits: GrowthLimits, atMs: number) {
    this.#limits = limits;
    this.#last = { bytes: 0, atMs };
    this.#waitMs = Math.min(firstMs, limits.maxMs) / 2;
  }

  /** Records the size; returns the time until the next check. */
  sampled(bytes: number, atMs: number): number {
    this.#measure(bytes, atMs);
    return this.#wait(this.#limits.maxBytes - bytes);
  }

  /**
   * Records a rotation: the size restarts at zero, and the growth rate is kept. Returns the time
   * until the next check.
   */
  rotated(bytes: number, atMs: number): number {
    this.#measure(bytes, atMs);
    this.#last = { bytes: 0, atMs };
    return this.#wait(this.#limits.maxBytes);
  }

  #measure(bytes: number, atMs: number): void {
    const tookMs = Math.max(1, atMs - this.#last.atMs);
    // A file that became smaller was truncated, so all its bytes are new.
    const grown = bytes < this.#last.bytes ? bytes : bytes - this.#last.bytes;
    this.#bytesPerMs = grown / tookMs;
    this.#last = { bytes, atMs };
  }

  #wait(leftBytes: number): number {
    const untilFullMs = this.#bytesPerMs > 0 ? leftBytes / this.#bytesPerMs : Number.POSITIVE_INFINITY;
    const restMs = Math.min(2 * this.#waitMs, this.#limits.maxMs);
    this.#waitMs = Math.max(minMs, Math.min(untilFullMs, restMs));
    return this.#waitMs;
  }
}
