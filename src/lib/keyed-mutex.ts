import { Waiters } from './waiters.ts';

/**
 * One lock per key, passed to its waiters in the order of their requests. An unused key takes no
 * memory. Not re-entrant: a holder that acquires its key again waits for itself.
 */
export class KeyedMutex<K> {
  readonly #held = new Map<K, Waiters<void>>();

  /** The number of locked keys. */
  get size(): number {
    return this.#held.size;
  }

  isHeld(key: K): boolean {
    return this.#held.has(key);
  }

  /**
   * Acquires the lock of the key. Disposing the result passes the lock to the next waiter; a second
   * disposal has no effect.
   */
  async acquire(key: K, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const waiters = this.#held.get(key);
    if (waiters === undefined) this.#held.set(key, new Waiters());
    else await waiters.wait(signal);
    return this.#hold(key);
  }

  /**
   * Acquires the locks of several keys, always in the same order, so that callers cannot deadlock.
   */
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
   * Runs the work while it holds the lock of the key. The signal aborts only the wait for the lock,
   * not the work.
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
