import { type Clock, onAbort, type Timer } from '../../src/lib/index.ts';

/**
 * The pending work of the simulated runtime. When the runtime is killed, its work never continues:
 * no code after a wait runs, not even clean-up, as in a killed process.
 */
export class Work {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The number of pending steps: zero when the runtime is idle. */
  get size(): number {
    return this.#timers.size;
  }

  /** Runs the callback later, unless the runtime is killed before. */
  after(ms: number, run: () => void): Timer {
    const timer = this.#clock.timer(ms, () => {
      this.#timers.delete(own);
      run();
    });
    const cancel = () => {
      this.#timers.delete(own);
      timer.cancel();
    };
    const own: Timer = { cancel, [Symbol.dispose]: cancel };
    this.#timers.add(own);
    return own;
  }

  /**
   * Waits; rejects with the signal's reason when the caller aborts, and never settles when the
   * runtime is killed.
   */
  pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal === undefined) {
        this.after(ms, resolve);
        return;
      }
      const timer = this.after(ms, () => {
        link[Symbol.dispose]();
        resolve();
      });
      const link = onAbort(signal, (reason) => {
        timer.cancel();
        reject(reason);
      });
    });
  }

  /** Drops all pending work, because the runtime was killed. */
  abandon(): void {
    for (const timer of this.#timers) timer.cancel();
  }
}
