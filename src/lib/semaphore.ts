import { onAbort } from './abort.ts';

/** A fixed number of permits, passed to waiters in the order of their requests. */
export class Semaphore {
  #free: number;
  readonly #queue = new Map<string, () => void>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** The position of the key in the queue, from 1; undefined if it does not wait. */
  positionOf(key: string): number | undefined {
    const at = [...this.#queue.keys()].indexOf(key);
    return at < 0 ? undefined : at + 1;
  }

  /** Acquires a permit; waits if none is free. A key must not wait twice at the same time. */
  async acquire(key: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(key, signal);
    return { [Symbol.dispose]: () => this.#release() };
  }

  #wait(key: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        link[Symbol.dispose]();
        resolve();
      };
      this.#queue.set(key, go);
      const link = onAbort(signal, (reason) => {
        this.#queue.delete(key);
        reject(reason);
      });
    });
  }

  #release(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#free++;
      return;
    }
    const [key, go] = next;
    this.#queue.delete(key);
    go();
  }
}
