import type { Clock, Timer } from './clock.ts';

interface Interval {
  readonly timer: Timer;
  isRequested: boolean;
}

/**
 * Acts immediately on the first request for a key, and then at most once per interval: further
 * requests during the interval are coalesced into one action at its end.
 */
export class KeyedThrottle<K extends string = string> implements Disposable {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #act: (key: K) => void;
  readonly #intervals = new Map<K, Interval>();

  constructor(clock: Clock, intervalMs: number, act: (key: K) => void) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#act = act;
  }

  /** The number of keys with a running interval. */
  get size(): number {
    return this.#intervals.size;
  }

  request(key: K): void {
    const interval = this.#intervals.get(key);
    if (interval === undefined) this.#run(key);
    else interval.isRequested = true;
  }

  /** Drops the pending requests of all keys. */
  [Symbol.dispose](): void {
    for (const { timer } of this.#intervals.values()) timer.cancel();
    this.#intervals.clear();
  }

  #run(key: K): void {
    const timer = this.#clock.timer(this.#intervalMs, () => this.#intervalEnded(key));
    this.#intervals.set(key, { timer, isRequested: false });
    this.#act(key);
  }

  #intervalEnded(key: K): void {
    const isRequested = this.#intervals.get(key)?.isRequested === true;
    this.#intervals.delete(key);
    if (isRequested) this.#run(key);
  }
}
