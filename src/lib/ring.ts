import { KubelingError } from './errors.ts';

/** A buffer with the newest items up to its capacity, oldest first; dropped items are counted. */
export class Ring<T> implements Iterable<T> {
  readonly capacity: number;
  /** The array grows up to the capacity, so that a ring with few items needs little memory. */
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

  /** How many items were dropped because the ring was full. */
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

  /** The newest item of the ring. */
  get last(): T | undefined {
    return this.#size === 0 ? undefined : this.#items[(this.#first + this.#size - 1) % this.capacity];
  }

  /** Replaces the newest item; adds the first one if the ring is empty. */
  replaceLast(item: T): void {
    if (this.#size === 0) this.push(item);
    else this.#items[(this.#first + this.#size - 1) % this.capacity] = item;
  }

  /** Removes and returns the oldest item of the ring. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items[this.#first];
    // Clears the slot, so that a removed item can be garbage collected.
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

/** Throws for an invalid capacity of a bounded collection. */
export function checkedCapacity(of: string, capacity: number): number {
  if (Number.isSafeInteger(capacity) && capacity > 0) return capacity;
  throw new KubelingError(
    'BUG',
    `Cannot create a ${of} as its capacity must be a whole number above 0: current value is ${capacity}`,
  );
}
