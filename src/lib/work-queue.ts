import { type Clock, checkedDelayMs, type Timer } from './clock.ts';
import { Heap, type HeapItem } from './heap.ts';
import { Waiters } from './waiters.ts';

interface Entry<K> extends HeapItem {
  readonly key: K;
  dueMs: number;
  /** The sequence number of the addition, which orders entries that are due at the same time. */
  order: number;
}

/**
 * A queue of keys with due times; each key is processed by one worker at a time.
 *
 *     add, enqueue          next               done
 *   ────────────────> waiting ────> in flight ──────> removed
 *                        ^              │ add, enqueue
 *                        │     done     v
 *                        └────────── in flight, to be processed again
 *
 * A key is in the queue at most once. `add` requests a key within its delay: it may make a waiting
 * key due earlier, but never later. `enqueue` sets the exact due time, whatever was requested
 * before.
 *
 * A consumer uses one of two calls: `next` delivers one key, which is in flight until `done`;
 * `takeDue` removes and returns all due keys, for a loop that polls the queue.
 */
export class WorkQueue<K extends string = string> implements Disposable {
  readonly #clock: Clock;
  readonly #waiting = new Map<K, Entry<K>>();
  readonly #byDue = new Heap<Entry<K>>(
    (a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order),
  );
  /** The in-flight keys, each with the time to process it again if it was added while in flight. */
  readonly #inFlight = new Map<K, number | undefined>();
  readonly #consumers = new Waiters<K | undefined>();
  #timer: Timer | undefined;
  #armedForMs: number | undefined;
  #sequence = 0;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Whether the key is waiting, or in flight and to be processed again. */
  has(key: K): boolean {
    return this.#waiting.has(key) || this.#inFlight.get(key) !== undefined;
  }

  /** Makes the key due within `delayMs`; an earlier due time stays. */
  add(key: K, delayMs = 0): void {
    this.#schedule(key, this.#dueIn(delayMs), Math.min);
  }

  /** Makes the key due after exactly `delayMs`, whatever was requested before. */
  enqueue(key: K, delayMs: number): void {
    this.#schedule(key, this.#dueIn(delayMs), (_before, dueMs) => dueMs);
  }

  /**
   * Called when a consumer processes a key that it did not take from the queue with `next`:
   * requests for the key before this call are removed, and requests after it make the key due
   * again.
   */
  begin(key: K): void {
    this.forget(key);
  }

  /**
   * Removes a waiting key; a key in flight is not processed again, and its consumer still calls
   * `done`.
   */
  forget(key: K): void {
    const entry = this.#waiting.get(key);
    if (entry !== undefined) this.#remove(entry);
    if (this.#inFlight.has(key)) this.#inFlight.set(key, undefined);
    this.#arm();
  }

  /**
   * Returns the first due key as soon as there is one; undefined once the queue is closed. The key
   * is then in flight until the consumer calls `done`.
   */
  async next(signal: AbortSignal): Promise<K | undefined> {
    signal.throwIfAborted();
    if (this.#closed) return undefined;
    const nextKey = this.#consumers.wait(signal);
    this.#deliver();
    try {
      return await nextKey;
    } finally {
      this.#arm();
    }
  }

  /**
   * Ends the work on a key delivered by `next`; if the key was added during the work, it waits
   * again.
   */
  done(key: K): void {
    const againMs = this.#inFlight.get(key);
    if (!this.#inFlight.delete(key) || againMs === undefined || this.#closed) return;
    this.#wait(key, againMs);
    this.#deliver();
  }

  /** Removes and returns all due keys in order. */
  takeDue(): K[] {
    const due: K[] = [];
    for (let key = this.#shiftDue(); key !== undefined; key = this.#shiftDue()) due.push(key);
    this.#arm();
    return due;
  }

  /** Closes the queue: drops waiting keys and releases every consumer. Later calls do nothing. */
  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#byDue.clear();
    this.#arm();
    this.#consumers.resolveAll(undefined);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #dueIn(delayMs: number): number {
    return this.#clock.monotonicMs() + checkedDelayMs(delayMs);
  }

  #schedule(key: K, dueMs: number, choose: (before: number, dueMs: number) => number): void {
    if (this.#closed) return;
    if (this.#inFlight.has(key)) {
      this.#inFlight.set(key, choose(this.#inFlight.get(key) ?? dueMs, dueMs));
      return;
    }
    this.#wait(key, choose(this.#waiting.get(key)?.dueMs ?? dueMs, dueMs));
    this.#deliver();
  }

  #wait(key: K, dueMs: number): void {
    const entry = this.#waiting.get(key);
    if (entry === undefined) {
      const added = { key, dueMs, order: this.#sequence++, heapIndex: -1 };
      this.#waiting.set(key, added);
      this.#byDue.push(added);
    } else if (entry.dueMs !== dueMs) {
      entry.dueMs = dueMs;
      entry.order = this.#sequence++;
      this.#byDue.update(entry);
    }
  }

  #remove(entry: Entry<K>): void {
    this.#byDue.delete(entry);
    this.#waiting.delete(entry.key);
  }

  #shiftDue(): K | undefined {
    const first = this.#byDue.peek();
    if (first === undefined || first.dueMs > this.#clock.monotonicMs()) return undefined;
    this.#remove(first);
    return first.key;
  }

  /** Delivers due keys while there are consumers, then waits for the next due time. */
  #deliver(): void {
    while (this.#consumers.size > 0) {
      const key = this.#shiftDue();
      if (key === undefined) break;
      this.#inFlight.set(key, undefined);
      this.#consumers.resolveFirst(key);
    }
    this.#arm();
  }

  /**
   * Uses one timer, only while a consumer waits. If it fires a fraction of a millisecond too early,
   * it is set again.
   */
  #arm(): void {
    const dueMs = this.#consumers.size > 0 ? this.#byDue.peek()?.dueMs : undefined;
    if (dueMs === this.#armedForMs) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#armedForMs = dueMs;
    if (dueMs === undefined) return;
    this.#timer = this.#clock.timer(dueMs - this.#clock.monotonicMs(), () => {
      this.#armedForMs = undefined;
      this.#deliver();
    });
  }
}
