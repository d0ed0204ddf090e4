/**
 * Runs at most a fixed number of tasks in one turn of the event loop, and the others in later
 * turns, in order, so that a flood of requests does not block the process.
 */
export class TurnLimiter {
  readonly #perTurn: number;
  #left: number;
  #waiting: (() => void)[] = [];
  #isScheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
    this.#left = perTurn;
  }

  /**
   * Runs the task now unless the limit of this turn is reached; otherwise in a later turn. A task
   * must not throw.
   */
  run(task: () => void): void {
    this.#schedule();
    if (this.#left === 0 || this.#waiting.length > 0) {
      this.#waiting.push(task);
      return;
    }
    this.#left--;
    task();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#isScheduled = false;
    const tasks = this.#waiting.splice(0, this.#perTurn);
    this.#left = this.#perTurn - tasks.length;
    if (tasks.length > 0) this.#schedule();
    for (const task of tasks) task();
  }
}
