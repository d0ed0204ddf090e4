import type { Random } from '../../src/lib/index.ts';
import {
  type Clock,
  checkedDelayMs,
  Heap,
  type HeapItem,
  type Instant,
  instant,
  sleepOn,
  strictlyIncreasing,
  type Timer,
} from '../../src/lib/index.ts';

interface Pending extends HeapItem {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

export interface VirtualClockOptions {
  /** The initial wall-clock time; 2026-01-01T00:00:00Z if undefined. */
  readonly startMs?: number;
  /**
   * Determines the order of timers due at the same moment. Without it they fire in the order in
   * which they were set.
   */
  readonly random?: Random;
}

const defaultStartMs = Date.UTC(2026, 0, 1);

/**
 * A clock that advances only on request. Between two timers all runnable tasks run: the whole
 * process settles before time advances, so the same program gives the same history.
 */
export class VirtualClock implements Clock {
  readonly #timers = new Heap<Pending>(
    (a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order),
  );
  readonly #random: Random | undefined;
  readonly stamp: () => number;
  #elapsedMs = 0;
  #wallOffsetMs: number;
  #sequence = 0;

  constructor(options: VirtualClockOptions = {}) {
    this.#wallOffsetMs = options.startMs ?? defaultStartMs;
    this.#random = options.random;
    this.stamp = strictlyIncreasing(() => this.#elapsedMs);
  }

  now(): Instant {
    return instant(this.#wallOffsetMs + this.#elapsedMs);
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  timer(ms: number, run: () => void): Timer {
    const pending: Pending = {
      dueMs: this.#elapsedMs + checkedDelayMs(ms),
      order: this.#random === undefined ? this.#sequence++ : this.#random.next(),
      run,
      heapIndex: -1,
    };
    this.#timers.push(pending);
    const cancel = () => {
      this.#timers.delete(pending);
    };
    return { cancel, [Symbol.dispose]: cancel };
  }

  /** The number of pending timers; zero when no work is left. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Sets only the wall clock, as an administrator or NTP would. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Advances the clock by `ms`; fires every timer that becomes due. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsedMs + ms;
    await settle();
    for (let next = this.#earliest(end); next !== undefined; next = this.#earliest(end)) {
      this.#fire(next);
      await settle();
    }
    this.#moveTo(end);
  }

  /** Advances the clock until the condition holds; returns whether it did within `limitMs`. */
  async advanceUntil(condition: () => boolean, limitMs: number): Promise<boolean> {
    const end = this.#elapsedMs + limitMs;
    await settle();
    while (!condition()) {
      const next = this.#earliest(end);
      if (next === undefined) {
        this.#moveTo(end);
        return false;
      }
      this.#fire(next);
      await settle();
    }
    return true;
  }

  #fire(pending: Pending): void {
    this.#timers.delete(pending);
    this.#moveTo(pending.dueMs);
    pending.run();
  }

  /**
   * Two callers may advance the clock concurrently; the one that ends at the earlier time must not
   * set it back.
   */
  #moveTo(ms: number): void {
    this.#elapsedMs = Math.max(this.#elapsedMs, ms);
  }

  #earliest(endMs: number): Pending | undefined {
    const first = this.#timers.peek();
    return first !== undefined && first.dueMs <= endMs ? first : undefined;
  }
}

/**
 * Resolves when every promise that needs neither time nor input to make progress has done so. Does
 * not wait for files, sockets or other processes.
 */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
