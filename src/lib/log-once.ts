import { LruMap } from './lru.ts';

const mostTroubles = 1_000;

/** Remembers what is wrong, so that each trouble is told when it begins and when it changes, not every time it is met. */
export class TroubleBoard {
  readonly #current = new LruMap<string, string>({ capacity: mostTroubles });

  has(key: string): boolean {
    return this.#current.has(key);
  }

  /** Whether this is news: another trouble than the one that is known of the same thing. */
  begin(key: string, text: string): boolean {
    if (this.#current.get(key) === text) return false;
    this.#current.set(key, text);
    return true;
  }

  /** Whether there was any. */
  end(key: string): boolean {
    return this.#current.delete(key);
  }
}
