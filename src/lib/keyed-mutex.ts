import { Waiters } from './waiters.ts';

/**
 * One lock for each key, handed on in the order it was asked for. A key nobody holds or wants is not remembered.
 * Not re-entrant: who holds a key and asks for it again waits for itself.
 */
export class KeyedMutex<K> {
  readonly #held = new Map<K, Waiters<void>>();

  /** How many keys are held. */
  get size(): number {
    return this.#held.size;
  }

  isHeld(key: K): boolean {
    return this.#held.has(key);
  }

  /** Disposing of the result gives the key to the next in line; doing so twice does nothing more. */
  async acquire(key: K, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const waiters = this.#held.get(key);
    if (waiters === undefined) this.#held.set(key, new Waiters());
    else await waiters.wait(signal);
    return this.#hold(key);
  }

  /** All of them, always in the same order, so that nobody waits for somebody who waits for him. */
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

  /** Runs the work alone among all work of that key. The signal ends the wait; the work must listen to it by itself. */
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
