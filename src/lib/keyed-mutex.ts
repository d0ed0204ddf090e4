import { Waiters } from './waiters.ts';

/**
 * One lock per key, passed on in the order of requests. An unused key takes no memory. Not
 * re-entrant: a holder that acquires its key again waits for itself.
 */
export class KeyedMutex<K> {
  readonly #held = new Map<K, Waiters<void>>();

  /** The number of keys that are held. */
  get size(): number {
    return this.#held.size;
  }

  isHeld(key: K): boolean {
    return this.#held.has(key);
  }

  /**
   * Disposing of the result passes the key to the next waiter; disposing twice has no further
   * effect.
   */
  async acquire(key: K, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const waiters = this.#held.get(key);
    if (waiters === undefined) this.#held.set(key, new Waiters());
    else await waiters.wait(signal);
    return this.#hold(key);
  }

  /** All keys, always acquired in the same order, so that callers cannot deadlock. */
  async acquireAll(keys: Iterable<K>, signal: AbortSignal): Promise<Disposable> {
    const held = new DisposableStack();
    try {
      for (const key of [...new Set(keys)].toSorted()) held.use(await this.acquire(key, signal));
      return held;
    } catch (error) {
      held.dispose();
      throw error;
    }
  }

  /**
   * Runs the work exclusively for that key. The signal aborts the wait; the work must observe it by
   * itself.
   */
  async run<T>(key: K, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    using _held = await this.acquire(key, signal);
    return await work();
  }

  #hold(key: K): Disposable {
    let held = true;
    return {
      [Symbol.dispose]: () => {
        if (held) this.#release(key);
        held = false;
      },
    };
  }

  #release(key: K): void {
    if (this.#held.get(key)?.resolveFirst() === false) this.#held.delete(key);
  }
}
