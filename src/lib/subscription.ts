import { checkedCapacity, Ring } from './ring.ts';
import { Waiters } from './waiters.ts';

/** How a subscription buffers unread items. */
export type Buffering<T> =
  /** Every item is delivered; beyond the capacity the oldest one is dropped. */
  | { readonly keep: 'each'; readonly capacity: number }
  /**
   * The newest item of a key replaces the previous one at its position; beyond the capacity the
   * oldest key is dropped.
   */
  | { readonly keep: 'newest-of-key'; readonly capacity: number; readonly keyOf: (item: T) => string };

/**
 * A bounded buffer between a sender and a slower reader. Sending never waits and never fails: if
 * the reader is slow, items are replaced or dropped, and counted. After closing, buffered items can
 * still be read. Items must not be undefined.
 */
export class Subscription<T> implements Disposable {
  readonly #backlog: Backlog<T>;
  readonly #readers = new Waiters<T | undefined>();
  readonly #onClose: () => void;
  #closed = false;

  /** `onClose` is called once when the subscription is closed, so that the sender stops sending. */
  constructor(buffering: Buffering<T>, onClose: () => void = () => {}) {
    this.#backlog =
      buffering.keep === 'each' ? eachItemBacklog(buffering.capacity) : newestPerKeyBacklog(buffering);
    this.#onClose = onClose;
  }

  /** How many items were dropped because the buffer was full. */
  get dropped(): number {
    return this.#backlog.dropped();
  }

  /** The number of unread items. */
  get size(): number {
    return this.#backlog.size();
  }

  get closed(): boolean {
    return this.#closed;
  }

  push(item: T): void {
    if (this.#closed || this.#readers.resolveFirst(item)) return;
    this.#backlog.push(item);
  }

  /** Returns the next item as soon as one is available; undefined when closed and empty. */
  async next(signal: AbortSignal): Promise<T | undefined> {
    signal.throwIfAborted();
    if (this.#backlog.size() > 0) return this.#backlog.shift();
    return this.#closed ? undefined : await this.#readers.wait(signal);
  }

  /**
   * Iterates over the items until the subscription is closed. Leaving the loop closes it; an abort
   * throws the signal's reason.
   */
  async *items(signal: AbortSignal): AsyncGenerator<T, void, undefined> {
    try {
      for (let item = await this.next(signal); item !== undefined; item = await this.next(signal)) yield item;
    } finally {
      this.close();
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#readers.resolveAll(undefined);
    this.#onClose();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

interface Backlog<T> {
  size(): number;
  dropped(): number;
  push(item: T): void;
  shift(): T | undefined;
}

function eachItemBacklog<T>(capacity: number): Backlog<T> {
  const ring = new Ring<T>(capacity);
  return {
    size: () => ring.size,
    dropped: () => ring.dropped,
    push: (item) => ring.push(item),
    shift: () => ring.shift(),
  };
}

function newestPerKeyBacklog<T>(options: { capacity: number; keyOf: (item: T) => string }): Backlog<T> {
  const capacity = checkedCapacity('subscription', options.capacity);
  const items = new Map<string, T>();
  let dropped = 0;
  const shift = () => {
    for (const [key, item] of items) {
      items.delete(key);
      return item;
    }
    return undefined;
  };
  const push = (item: T) => {
    // Setting an existing key of a Map keeps its position, so that new items of other keys cannot
    // starve it.
    items.set(options.keyOf(item), item);
    if (items.size <= capacity) return;
    shift();
    dropped++;
  };
  return { size: () => items.size, dropped: () => dropped, push, shift };
}
