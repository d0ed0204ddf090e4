import { Waiters } from '../lib/index.ts';

/** A line between those who make changes and the one who handles them: in order, nothing lost, and bounded. */
export class UpdateQueue<Item> {
  readonly #capacity: number;
  readonly #items: Item[] = [];
  readonly #takers = new Waiters<Item>();
  readonly #putters = new Waiters<void>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Resolves when the item stands in line, which takes as long as the line is full. Putters must take turns. */
  async put(item: Item, signal: AbortSignal): Promise<void> {
    while (this.#items.length >= this.#capacity) await this.#putters.wait(signal);
    if (!this.#takers.serve(item)) this.#items.push(item);
  }

  async take(signal: AbortSignal): Promise<Item> {
    signal.throwIfAborted();
    const item = this.#items.shift();
    if (item === undefined) return await this.#takers.wait(signal);
    this.#putters.serve();
    return item;
  }
}
