import { type Clock, onAbort, type Timer } from '../../src/lib/index.ts';

/**
 * What the runtime is busy with. When the runtime dies, its work stops where it is: nothing that was to come after a
 * pause ever runs, not even clean-up, just as in a killed process.
 */
export class Work {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many steps are under way: zero when the runtime is idle. */
  get size(): number {
    return this.#timers.size;
  }

  /** Later, unless the runtime dies before. */
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

  /** Takes time; rejects with the signal's reason when the caller is gone. Never settles when the runtime dies. */
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

  /** The runtime died. */
  abandon(): void {
    for (const timer of this.#timers) timer.cancel();
  }
}
