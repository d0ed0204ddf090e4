/** An item of a heap. It stores its position in the heap, so that it can be moved or removed. */
export interface HeapItem {
  /** The position in the heap, which only the heap changes; -1 while the item is in no heap. */
  heapIndex: number;
}

/**
 * A binary heap that can remove any item, or move it after its rank changed, in logarithmic time.
 * An item may be in one heap only.
 */
export class Heap<T extends HeapItem> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#isBefore = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  has(item: T): boolean {
    return this.#items[item.heapIndex] === item;
  }

  push(item: T): void {
    item.heapIndex = this.#items.length;
    this.#items.push(item);
    this.#rise(item);
  }

  pop(): T | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.delete(first);
    return first;
  }

  /** Returns whether the item was in the heap. */
  delete(item: T): boolean {
    if (!this.has(item)) return false;
    const hole = item.heapIndex;
    const last = this.#items.pop();
    item.heapIndex = -1;
    if (last !== undefined && last !== item) {
      this.#put(last, hole);
      this.update(last);
    }
    return true;
  }

  /** Restores the order after the rank of the item has changed. */
  update(item: T): void {
    this.#rise(item);
    this.#sink(item);
  }

  clear(): void {
    for (const item of this.#items) item.heapIndex = -1;
    this.#items.length = 0;
  }

  #rise(item: T): void {
    for (;;) {
      const parentIndex = (item.heapIndex - 1) >> 1;
      const parent = this.#items[parentIndex];
      if (item.heapIndex === 0 || parent === undefined || !this.#isBefore(item, parent)) return;
      this.#swap(item, parent);
    }
  }

  #sink(item: T): void {
    for (;;) {
      const child = this.#firstChild(item.heapIndex);
      if (child === undefined || !this.#isBefore(child, item)) return;
      this.#swap(child, item);
    }
  }

  #firstChild(index: number): T | undefined {
    const left = this.#items[2 * index + 1];
    const right = this.#items[2 * index + 2];
    return left !== undefined && right !== undefined && this.#isBefore(right, left) ? right : left;
  }

  #swap(a: T, b: T): void {
    const index = a.heapIndex;
    this.#put(a, b.heapIndex);
    this.#put(b, index);
  }

  #put(item: T, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }
}
