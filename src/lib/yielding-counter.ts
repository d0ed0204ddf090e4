/**
 * Divides long work into slices of a fixed number of steps, and yields to the event loop between
 * them. It counts steps instead of measuring time, so work shorter than one slice never yields,
 * whether the clock is real or virtual.
 */
export class YieldingCounter {
  readonly #stepsPerTurn: number;
  #steps = 0;

  constructor(stepsPerSlice: number) {
    this.#stepsPerTurn = stepsPerSlice;
  }

  /**
   * Counts a completed step. Returns true when the slice is full: the caller then awaits `yield`.
   */
  count(steps = 1): boolean {
    this.#steps += steps;
    return this.#steps >= this.#stepsPerTurn;
  }

  /** Yields to the event loop and starts the next slice. */
  async yield(): Promise<void> {
    this.#steps = 0;
    await nextTurn();
  }
}

/** Resolves after pending input and output of the event loop were processed. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
