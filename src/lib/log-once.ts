import { LruMap } from './lru.ts';

const maxRemembered = 1_000;

/**
 * Stores the last logged message of each problem, so that a problem is logged when it begins or
 * changes, and not at every occurrence.
 */
export class LogOnce {
  readonly #reported = new LruMap<string, string>({ capacity: maxRemembered });

  has(key: string): boolean {
    return this.#reported.has(key);
  }

  /**
   * Records the message of a problem. True if it differs from the recorded one, so that the caller
   * should log it.
   */
  isNew(key: string, text: string): boolean {
    if (this.#reported.get(key) === text) return false;
    this.#reported.set(key, text);
    return true;
  }

  /**
   * Removes a recovered problem. True if it was recorded, so that the caller may log the recovery.
   */
  clear(key: string): boolean {
    return this.#reported.delete(key);
  }
}
