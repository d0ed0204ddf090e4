import { checkedCapacity } from './ring.ts';

export interface LruOptions<K, V> {
  readonly capacity: number;
  /** Called with each evicted entry, but not with entries deleted by `delete`. Must not throw. */
  readonly onEvict?: (key: K, value: V) => void;
}

/**
 * A map that evicts the least recently used entry when it is full. `get` counts as use; `peek` does
 * not.
 */
export class LruMap<K, V> implements Iterable<[K, V]> {
  readonly capacity: number;
  readonly #onEvict: ((key: K, value: V) => void) | undefined;
  /** The entries in order of use, least recently used first: a Map keeps the order of insertion. */
  readonly #entries = new Map<K, V>();

  constructor(options: LruOptions<K, V>) {
    this.capacity = checkedCapacity('LRU map', options.capacity);
    this.#onEvict = options.onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    if (!this.#entries.has(key)) return undefined;
    const value = this.#entries.get(key) as V;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  peek(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.capacity) this.#evictOldest();
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Iterates over the entries, least recently used first. */
  [Symbol.iterator](): IterableIterator<[K, V]> {
    return this.#entries[Symbol.iterator]();
  }

  #evictOldest(): void {
    for (const [key, value] of this.#entries) {
      this.#entries.delete(key);
      this.#onEvict?.(key, value);
      return;
    }
  }
}
