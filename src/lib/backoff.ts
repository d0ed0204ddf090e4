import { KubelingError } from './errors.ts';
import { LruMap } from './lru.ts';
import { jitter, type Random } from './random.ts';

/** How delays grow from one failure to the next. Says nothing about who waits, or on which clock. */
export interface BackoffPolicy {
  readonly baseMs: number;
  /** 2 unless given. */
  readonly factor?: number;
  /** Bounds the delay before jitter, so that those who all reached it still spread. */
  readonly maxMs: number;
  /** Stretches each delay by up to this share of itself; 0 unless given. */
  readonly jitter?: number;
  /** A failure this long after the last one counts as the first again; twice the maximum unless given. */
  readonly resetAfterMs?: number;
}

/** What is remembered of failures in a row. Times are milliseconds of whatever scale the caller uses throughout. */
export interface BackoffState {
  readonly failures: number;
  readonly delayMs: number;
  readonly lastMs: number;
}

/** The delay after the n-th failure in a row, counted from 1, without jitter. */
export function backoffDelayMs(policy: BackoffPolicy, failures: number): number {
  const grown = policy.baseMs * (policy.factor ?? 2) ** Math.max(0, failures - 1);
  return Math.min(grown, policy.maxMs);
}

export interface BackoffEvent {
  readonly nowMs: number;
  /** When it happened, if that was not now: what ran long before it ended starts anew. */
  readonly eventMs?: number;
  readonly random: Random;
}

/** The state after one more failure. */
export function nextBackoff(
  policy: BackoffPolicy,
  state: BackoffState | undefined,
  event: BackoffEvent,
): BackoffState {
  const quiet = state === undefined || isQuiet(policy, state, event.eventMs ?? event.nowMs);
  const failures = quiet ? 1 : state.failures + 1;
  const delayMs = jitter(event.random, backoffDelayMs(policy, failures), policy.jitter ?? 0);
  return { failures, delayMs, lastMs: event.nowMs };
}

/** Whether so much time has passed since the last failure that it no longer counts. */
export function isQuiet(policy: BackoffPolicy, state: BackoffState, atMs: number): boolean {
  return atMs - state.lastMs > (policy.resetAfterMs ?? 2 * policy.maxMs);
}

/** Refuses a policy that would give delays of no sense, naming all that is wrong with it. */
export function checkedPolicy(policy: BackoffPolicy): BackoffPolicy {
  const { baseMs, maxMs, factor = 2, jitter = 0, resetAfterMs = 0 } = policy;
  const wrong = [
    baseMs >= 0 ? '' : `baseMs must be at least 0: current value is ${baseMs}`,
    maxMs >= baseMs ? '' : `maxMs must be at least baseMs: current value is ${maxMs}`,
    factor >= 1 ? '' : `factor must be at least 1: current value is ${factor}`,
    jitter >= 0 ? '' : `jitter must be at least 0: current value is ${jitter}`,
    resetAfterMs >= 0 ? '' : `resetAfterMs must be at least 0: current value is ${resetAfterMs}`,
  ].filter((text) => text !== '');
  if (wrong.length === 0) return policy;
  throw new KubelingError('BUG', `Cannot back off as ${wrong.join('; ')}`);
}

/** The back-off of one thing that is tried again and again. */
export class Backoff {
  readonly #policy: BackoffPolicy;
  readonly #random: Random;
  #state: BackoffState | undefined;

  constructor(policy: BackoffPolicy, random: Random) {
    this.#policy = checkedPolicy(policy);
    this.#random = random;
  }

  get failures(): number {
    return this.#state?.failures ?? 0;
  }

  /** Notes a failure and answers how long to wait before the next try. */
  fail(nowMs: number): number {
    this.#state = nextBackoff(this.#policy, this.#state, { nowMs, random: this.#random });
    return this.#state.delayMs;
  }

  /** Notes a success: the next failure counts as the first. */
  reset(): void {
    this.#state = undefined;
  }
}

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
  remainingMs(key: K, times: BackoffTimes): number {
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

  delete(key: K): void {
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
