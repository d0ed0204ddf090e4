import { type BackoffPolicy, type BackoffState, checkedPolicy, isQuiet, nextBackoff } from './backoff.ts';
import { LruMap } from './lru.ts';
import type { Random } from './random.ts';

export interface KeyedBackoffOptions {
  readonly policy: BackoffPolicy;
  readonly random: Random;
  /** More keys than this push out the one that failed longest ago; 10,000 unless given. */
  readonly capacity?: number;
}

export interface BackoffTimes {
  readonly nowMs: number;
  /** When the failed thing ended, if known; the time it was noted unless given. */
  readonly eventMs?: number;
}

/**
 * Back-off for each of many things, such as the containers or images of a node. It reads no clock: each call brings
 * its times, all of one scale. On a wall clock a step back lengthens waits by that step, so prefer a monotonic one.
 */
export class KeyedBackoff<K extends string = string> {
  readonly #policy: BackoffPolicy;
  readonly #random: Random;
  readonly #states: LruMap<K, BackoffState>;

  constructor(options: KeyedBackoffOptions) {
    this.#policy = checkedPolicy(options.policy);
    this.#random = options.random;
    this.#states = new LruMap({ capacity: options.capacity ?? 10_000 });
  }

  get size(): number {
    return this.#states.size;
  }

  /** What is remembered of the key: its delay is the one to show to users. */
  state(key: K): BackoffState | undefined {
    return this.#states.peek(key);
  }

  /** How long the key must still wait, counted from the event; 0 when it may go on. */
  waitMs(key: K, times: BackoffTimes): number {
    const state = this.#states.peek(key);
    if (state === undefined) return 0;
    if (isQuiet(this.#policy, state, times.eventMs ?? times.nowMs)) return 0;
    const sinceMs = times.eventMs ?? state.lastMs;
    return Math.max(0, state.delayMs - (times.nowMs - sinceMs));
  }

  /** Notes one more failure, or one more try that may fail, and answers the delay now in force. */
  fail(key: K, times: BackoffTimes): number {
    const state = nextBackoff(this.#policy, this.#states.peek(key), { ...times, random: this.#random });
    this.#states.set(key, state);
    return state.delayMs;
  }

  forget(key: K): void {
    this.#states.delete(key);
  }

  /** Forgets the keys that were quiet for long enough to start anew; answers how many. */
  collect(nowMs: number): number {
    const quiet = [...this.#states].filter(([, state]) => isQuiet(this.#policy, state, nowMs));
    for (const [key] of quiet) this.#states.delete(key);
    return quiet.length;
  }

  /** All that is remembered, to be kept somewhere; give it back with `restore`. */
  entries(): [K, BackoffState][] {
    return [...this.#states];
  }

  restore(entries: Iterable<readonly [K, BackoffState]>): void {
    for (const [key, state] of entries) this.#states.set(key, state);
  }
}
