import { KubelingError } from './errors.ts';
import { LruMap } from './lru.ts';
import { jitter, type Random } from './random.ts';

/** The policy of a back-off: how the delay grows with consecutive failures. */
export interface BackoffPolicy {
  readonly baseMs: number;
  /** The factor by which the delay grows with each failure; 2 by default. */
  readonly factor?: number;
  /**
   * The maximum delay before jitter. Jitter may exceed it, so that retries at the maximum delay do
   * not all happen at the same time.
   */
  readonly maxMs: number;
  /**
   * The maximum share of random jitter: 0.5 extends each delay by up to half of it; 0 by default.
   */
  readonly jitter?: number;
  /**
   * A failure this long after the previous one counts as the first again; by default twice the
   * maximum delay.
   */
  readonly resetAfterMs?: number;
}

/**
 * The state of consecutive failures. All calls must pass times of the same clock in milliseconds.
 */
export interface BackoffState {
  readonly failures: number;
  readonly delayMs: number;
  readonly lastMs: number;
}

/** The delay without jitter after the n-th consecutive failure, counted from 1. */
export function backoffDelayMs(policy: BackoffPolicy, failures: number): number {
  const grown = policy.baseMs * (policy.factor ?? 2) ** Math.max(0, failures - 1);
  return Math.min(grown, policy.maxMs);
}

export interface BackoffEvent {
  readonly nowMs: number;
  /**
   * When the failure happened; by default `nowMs`. A task that ran for long before it failed starts
   * again with the base delay.
   */
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

/** Whether the last failure is longer ago than the reset time. */
export function isQuiet(policy: BackoffPolicy, state: BackoffState, atMs: number): boolean {
  return atMs - state.lastMs > (policy.resetAfterMs ?? 2 * policy.maxMs);
}

/** Returns the policy; throws for an invalid one, naming every invalid field. */
function checkedPolicy(policy: BackoffPolicy): BackoffPolicy {
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

/** The back-off of one operation that is retried. */
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

  /** Records a failure and returns the delay before the next attempt. */
  fail(nowMs: number): number {
    this.#state = nextBackoff(this.#policy, this.#state, { nowMs, random: this.#random });
    return this.#state.delayMs;
  }

  /** Records a success: the next failure counts as the first. */
  reset(): void {
    this.#state = undefined;
  }
}

export interface KeyedBackoffOptions {
  readonly policy: BackoffPolicy;
  readonly random: Random;
  /**
   * The maximum number of keys, 10,000 by default; beyond it the key that failed longest ago is
   * evicted.
   */
  readonly capacity?: number;
}

export interface BackoffTimes {
  readonly nowMs: number;
  /** When the failed task ended; by default `nowMs`. */
  readonly eventMs?: number;
}

/**
 * Back-off per key, such as the containers or images of a node. It reads no clock: each call passes
 * its times, all of the same clock. A wall clock that is set back lengthens waits by that step, so
 * prefer a monotonic clock.
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

  /** The back-off state of the key; its delay is the one shown to users. */
  state(key: K): BackoffState | undefined {
    return this.#states.peek(key);
  }

  /**
   * The remaining delay of the key, counted from `eventMs` or the last failure; 0 when the key may
   * be retried.
   */
  remainingMs(key: K, times: BackoffTimes): number {
    const state = this.#states.peek(key);
    if (state === undefined) return 0;
    if (isQuiet(this.#policy, state, times.eventMs ?? times.nowMs)) return 0;
    const sinceMs = times.eventMs ?? state.lastMs;
    return Math.max(0, state.delayMs - (times.nowMs - sinceMs));
  }

  /** Records a failure, or an attempt that may fail, and returns the new delay. */
  fail(key: K, times: BackoffTimes): number {
    const state = nextBackoff(this.#policy, this.#states.peek(key), { ...times, random: this.#random });
    this.#states.set(key, state);
    return state.delayMs;
  }

  delete(key: K): void {
    this.#states.delete(key);
  }

  /** Removes the keys whose reset time has passed; returns their number. */
  collect(nowMs: number): number {
    const quiet = [...this.#states].filter(([, state]) => isQuiet(this.#policy, state, nowMs));
    for (const [key] of quiet) this.#states.delete(key);
    return quiet.length;
  }

  /** All back-off states, so that the caller can persist them; `restore` reads them. */
  entries(): [K, BackoffState][] {
    return [...this.#states];
  }

  restore(entries: Iterable<readonly [K, BackoffState]>): void {
    for (const [key, state] of entries) this.#states.set(key, state);
  }
}
