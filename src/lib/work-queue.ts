import { type Clock, checkedDelayMs, type Timer } from './clock.ts';
import { Heap, type HeapItem } from './heap.ts';
import { Waiters } from './waiters.ts';

interface Entry<K> extends HeapItem {
  readonly key: K;
  dueMs: number;
  /** Orders entries due at the same moment by when they were added. */
  order: number;
}

/**
 * Keys to be worked on, each when it falls due and by one worker at a time.
 *
 *     add, enqueue          next             done
 *   ────────────────> waiting ────> in work ──────> gone
 *                        ^             │ add, enqueue meanwhile
 *                        │    done     v
 *                        └───────── in work, to be done again
 *
 * A key is in the queue at most once. `add` asks for a key no later than its delay: it brings a waiting key forward
 * and never pushes it back. `enqueue` says when exactly: it overwrites whatever was asked before.
 *
 * There are two ways to take: `next` hands out one key, which stays in work until `done`; `takeDue` takes all that
 * is due at once and forgets it, for a loop that looks by itself.
 */
export class WorkQueue<K extends string = string> implements Disposable {
  readonly #clock: Clock;
  readonly #waiting = new Map<K, Entry<K>>();
  readonly #byDue = new Heap<Entry<K>>(
    (a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order),
  );
  /** In-flight keys, with the time to process them again if they were added meanwhile. */
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

  /** Whether the key waits, or is to be processed again. */
  has(key: K): boolean {
    return this.#waiting.has(key) || this.#inFlight.get(key) !== undefined;
  }

  /** Adds the key to be due within `delayMs`; an earlier time already set stays. */
  add(key: K, delayMs = 0): void {
    this.#schedule(key, this.#dueIn(delayMs), Math.min);
  }

  /** Makes the key due after exactly `delayMs`, whatever was set before. */
  enqueue(key: K, delayMs: number): void {
    this.#schedule(key, this.#dueIn(delayMs), (_before, dueMs) => dueMs);
  }

  /**
   * Marks the key as in flight without `next`: earlier additions are covered by this run, later
   * ones are not.
   */
  begin(key: K): void {
    this.forget(key);
  }

  /** Drops the key if it waits; work in flight continues and still ends with `done`. */
  forget(key: K): void {
    const entry = this.#waiting.get(key);
    if (entry !== undefined) this.#remove(entry);
    if (this.#inFlight.has(key)) this.#inFlight.set(key, undefined);
    this.#arm();
  }

  /**
   * The first due key, as soon as there is one; undefined once the queue is closed. The key is then
   * in flight until the consumer calls `done`.
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

  /** Ends the work on a key delivered by `next`; if it was added meanwhile it waits again. */
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

  /** Drops waiting keys and releases every consumer. Later calls do nothing. */
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
   * One timer, only while a consumer waits. It may fire a fraction early; then it is armed again.
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
