import { KubelingError } from './errors.ts';

/** The newest items up to the capacity, oldest first; dropped items are counted. */
export class Ring<T> implements Iterable<T> {
  readonly capacity: number;
  /** Grows up to the capacity, so that a short ring needs little memory. */
  readonly #items: (T | undefined)[] = [];
  #first = 0;
  #size = 0;
  #dropped = 0;

  constructor(capacity: number) {
    this.capacity = checkedCapacity('ring', capacity);
  }

  get size(): number {
    return this.#size;
  }

  /** How many items were dropped for newer ones. */
  get dropped(): number {
    return this.#dropped;
  }

  push(item: T): void {
    if (this.#size === this.capacity) {
      this.shift();
      this.#dropped++;
    }
    this.#items[(this.#first + this.#size) % this.capacity] = item;
    this.#size++;
  }

  /** The newest item. */
  get last(): T | undefined {
    return this.#size === 0 ? undefined : this.#items[(this.#first + this.#size - 1) % this.capacity];
  }

  /** Replaces the newest item; adds the first one if the ring is empty. */
  replaceLast(item: T): void {
    if (this.#size === 0) this.push(item);
    else this.#items[(this.#first + this.#size - 1) % this.capacity] = item;
  }

  /** Removes the oldest item. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items[this.#first];
    // The ring must not keep removed items alive.
    this.#items[this.#first] = undefined;
    this.#first = (this.#first + 1) % this.capacity;
    this.#size--;
    return item;
  }

  clear(): void {
    this.#items.length = 0;
    this.#first = 0;
    this.#size = 0;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#size; i++) {
      yield this.#items[(this.#first + i) % this.capacity] as T;
    }
  }

  toArray(): T[] {
    return [...this];
  }
}

/** A bounded collection needs a valid bound. */
export function checkedCapacity(of: string, capacity: number): number {
  if (Number.isSafeInteger(capacity) && capacity > 0) return capacity;
  throw new KubelingError(
    'BUG',
    `Cannot create a ${of} as its capacity must be a whole number above 0: current value is ${capacity}`,
  );
}
