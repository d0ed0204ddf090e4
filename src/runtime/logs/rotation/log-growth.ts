/** Between two looks at a log that grows fast. */
const minMs = 100;
/** Until the second look at a log. */
const firstMs = 1_000;

export interface GrowthLimits {
  /** Until the log is full. */
  readonly maxBytes: number;
  /** Between two looks at most. */
  readonly maxMs: number;
}

/** When to look at a log again: as soon as it may be full at the pace it grows, and less and less often while it rests. */
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

  /** Answers how long to wait. */
  sampled(bytes: number, atMs: number): number {
    this.#measure(bytes, atMs);
    return this.#wait(this.#limits.maxBytes - bytes);
  }

  /** The log begins anew, and grows on as before unless it turns out otherwise. */
  rotated(bytes: number, atMs: number): number {
    this.#measure(bytes, atMs);
    this.#last = { bytes: 0, atMs };
    return this.#wait(this.#limits.maxBytes);
  }

  #measure(bytes: number, atMs: number): void {
    const tookMs = Math.max(1, atMs - this.#last.atMs);
    // What is shorter than it was has begun anew.
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
