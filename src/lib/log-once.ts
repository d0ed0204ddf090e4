import { LruMap } from './lru.ts';

const maxRemembered = 1_000;

/** Remembers the last reported text of each problem, so that a problem is logged when it begins or changes, not each time it is met. */
export class LogOnce {
  readonly #reported = new LruMap<string, string>({ capacity: maxRemembered });

  has(key: string): boolean {
    return this.#reported.has(key);
  }

  /** Records the text of a problem. True if it differs from the text recorded before, so the caller should log it. */
  isNew(key: string, text: string): boolean {
    if (this.#reported.get(key) === text) return false;
    this.#reported.set(key, text);
    return true;
  }

  /** Drops a recovered problem. True if it was recorded, so the caller may log the recovery. */
  clear(key: string): boolean {
    return this.#reported.delete(key);
  }
}
