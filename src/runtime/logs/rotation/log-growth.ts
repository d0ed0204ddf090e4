/** Minimum interval between checks. */
const minMs = 100;
/** Time until the second check. */
const firstMs = 1_000;

export interface GrowthLimits {
  /** Size at which the log is full. */
  readonly maxBytes: number;
  /** Maximum interval between checks. */
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

  /** Returns the time until the next check. */
  sampled(bytes: number, atMs: number): number {
    this.#measure(bytes, atMs);
    return this.#wait(this.#limits.maxBytes - bytes);
  }

  /** Starts a new file and keeps the growth rate. */
  rotated(bytes: number, atMs: number): number {
    this.#measure(bytes, atMs);
    this.#last = { bytes: 0, atMs };
    return this.#wait(this.#limits.maxBytes);
  }

  #measure(bytes: number, atMs: number): void {
    const tookMs = Math.max(1, atMs - this.#last.atMs);
    // A file smaller than before was started again.
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
