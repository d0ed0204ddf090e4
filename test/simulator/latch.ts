import { onAbort } from '../../src/lib/index.ts';
import type { Work } from './work.ts';

/** An event that occurs once; callers can wait for it. */
export class Latch {
  readonly #waiting = new Set<() => void>();
  #open = false;

  get isOpen(): boolean {
    return this.#open;
  }

  open(): void {
    this.#open = true;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Waits for the event; rejects with the signal's reason when the caller aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#open) return resolve();
      if (signal.aborted) return reject(signal.reason);
      const wake = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#waiting.add(wake);
      const link = onAbort(signal, (reason) => {
        this.#waiting.delete(wake);
        reject(reason);
      });
    });
  }

  /** Waits for the event up to a time limit; resolves with whether it occurred. */
  waitFor(ms: number, work: Work, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#open) return resolve(true);
      if (signal.aborted) return reject(signal.reason);
      const end = (settle: () => void) => {
        timer.cancel();
        link[Symbol.dispose]();
        this.#waiting.delete(wake);
        settle();
      };
      const wake = () => end(() => resolve(true));
      const timer = work.after(ms, () => end(() => resolve(false)));
      this.#waiting.add(wake);
      const link = onAbort(signal, (reason) => end(() => reject(reason)));
    });
  }
}
