/**
 * Divides long work into slices of a fixed number of steps, with a turn of the event loop in
 * between. Counting needs no clock: work that fits into one slice never yields, in virtual time as
 * in real time.
 */
export class YieldingCounter {
  readonly #stepsPerTurn: number;
  #steps = 0;

  constructor(stepsPerSlice: number) {
    this.#stepsPerTurn = stepsPerSlice;
  }

  /** Counts completed steps. True when the slice is full: the caller then awaits `yield`. */
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
