import { onAbort } from './abort.ts';
import type { Clock } from './clock.ts';

/**
 * A queue of callers that wait for a value, first come first served. An aborted caller leaves the
 * queue immediately, so no value is lost.
 */
export class Waiters<T> {
  readonly #queue = new Set<(value: T) => void>();

  get size(): number {
    return this.#queue.size;
  }

  /**
   * Waits for a value. Rejects with the signal's reason as soon as it is aborted; leaves no
   * listener.
   */
  wait(signal: AbortSignal): Promise<T> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      const accept = (value: T) => {
        link[Symbol.dispose]();
        resolve(value);
      };
      this.#queue.add(accept);
      const link = onAbort(signal, (reason) => {
        this.#queue.delete(accept);
        reject(reason);
      });
    });
  }

  /** Waits for a value up to a time limit. */
  async waitWithin(clock: Clock, ms: number, signal: AbortSignal): Promise<T | 'time'> {
    signal.throwIfAborted();
    return await new Promise<T | 'time'>((resolve, reject) => {
      const end = () => {
        timer.cancel();
        link[Symbol.dispose]();
        this.#queue.delete(accept);
      };
      const accept = (value: T) => {
        end();
        resolve(value);
      };
      this.#queue.add(accept);
      const timer = clock.timer(ms, () => {
        end();
        resolve('time');
      });
      const link = onAbort(signal, (reason) => {
        end();
        reject(reason);
      });
    });
  }

  /** Resolves the first waiter with the value; returns whether there was a waiter. */
  resolveFirst(value: T): boolean {
    const [first] = this.#queue;
    if (first === undefined) return false;
    this.#queue.delete(first);
    first(value);
    return true;
  }

  resolveAll(value: T): void {
    while (this.resolveFirst(value));
  }
}
