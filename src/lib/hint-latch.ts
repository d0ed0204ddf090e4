import { onAbort } from './abort.ts';
import type { Clock } from './clock.ts';

/** Remembers a hint until a waiter receives it. */
export class HintLatch {
  readonly #clock: Clock;
  #raised = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  clear(): void {
    this.#raised = false;
  }

  /**
   * Resolves at the first hint, or after `ms` without one; rejects when aborted. Only one waiter is
   * allowed at a time.
   */
  async wait(ms: number, signal: AbortSignal): Promise<'hint' | 'time'> {
    signal.throwIfAborted();
    if (this.#raised) return 'hint';
    return await new Promise((resolve, reject) => {
      const end = () => {
        timer.cancel();
        abort[Symbol.dispose]();
        this.#wake = undefined;
      };
      const timer = this.#clock.timer(ms, () => {
        end();
        resolve('time');
      });
      const abort = onAbort(signal, (reason) => {
        end();
        reject(reason);
      });
      this.#wake = () => {
        end();
        resolve('hint');
      };
    });
  }
}
