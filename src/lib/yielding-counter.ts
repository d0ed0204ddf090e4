/**
 * Divides long work into slices of a fixed number of steps, with a turn of the event loop between two of them. Counting
 * needs no clock: work that fits into one slice never leaves its turn, in virtual time as in real time.
 */
export class YieldingCounter {
  readonly #stepsPerTurn: number;
  #steps = 0;

  constructor(stepsPerSlice: number) {
    this.#stepsPerTurn = stepsPerSlice;
  }

  /** Counts steps that were taken. True when the slice is full: the caller then awaits `pause`. */
  count(steps = 1): boolean {
    this.#steps += steps;
    return this.#steps >= this.#stepsPerTurn;
  }

  /** Lets the event loop take a turn, and begins the next slice. */
  async yield(): Promise<void> {
    this.#steps = 0;
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}
