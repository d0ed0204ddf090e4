import { onAbort } from './abort.ts';
import type { Clock } from './clock.ts';

/**
 * Callers who wait their turn for something to be handed to them, first come first served. One who gives up leaves
 * the line at once, and nothing is handed to nobody.
 */
export class Waiters<T> {
  readonly #queue = new Set<(value: T) => void>();

  get size(): number {
    return this.#queue.size;
  }

  /** Rejects with the signal's reason as soon as it is aborted; leaves no listener behind. */
  wait(signal: AbortSignal): Promise<T> {
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      const take = (value: T) => {
        link[Symbol.dispose]();
        resolve(value);
      };
      this.#queue.add(take);
      const link = onAbort(signal, (reason) => {
        this.#queue.delete(take);
        reject(reason);
      });
    });
  }

  /** The same, but for this long and no longer. */
  async waitWithin(clock: Clock, ms: number, signal: AbortSignal): Promise<T | 'time'> {
    signal.throwIfAborted();
    return await new Promise<T | 'time'>((resolve, reject) => {
      const end = () => {
        timer.cancel();
        link[Symbol.dispose]();
        this.#queue.delete(take);
      };
      const take = (value: T) => {
        end();
        resolve(value);
      };
      this.#queue.add(take);
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

  /** Hands the value to the first in line; answers whether there was one. */
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
