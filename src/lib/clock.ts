import { KubelingError } from './errors.ts';

/** Wall time: milliseconds since 1970. It may jump, so never compute durations from it. */
export type Instant = number & { readonly __brand: 'Instant' };

/** A timer that has not fired yet. Cancelling twice, or after it fired, does nothing. */
export interface Timer extends Disposable {
  cancel(): void;
}

/** The only access to time: all code uses a Clock instead of Date or timers. */
export interface Clock {
  /** The wall time, for timestamps that users read. */
  now(): Instant;
  /**
   * Monotonic time in milliseconds, for durations: it never decreases, and has no meaning in other
   * processes.
   */
  monotonicMs(): number;
  /**
   * A reading strictly greater than every earlier one of this clock, for ordering; do not compare
   * it with other clocks.
   */
  stamp(): number;
  /**
   * Resolves after `ms`; rejects with the signal's reason as soon as the signal is aborted. Leaves
   * no listener and no timer.
   */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms`, never before `timer` has returned; `run` must not throw. */
  timer(ms: number, run: () => void): Timer;
}

/** Formats a time for the API and for output: with whole seconds. */
export function apiTime(at: number): string {
  const precise = new Date(at).toISOString();
  return `${precise.slice(0, precise.lastIndexOf('.'))}Z`;
}

export function instant(ms: number): Instant {
  return ms as Instant;
}

/** Implements `sleep` for any clock with timers. */
export function sleepOn(clock: Pick<Clock, 'timer'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = clock.timer(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** Returns strictly growing readings, even when the source returns the same reading twice. */
export function strictlyIncreasing(read: () => number): () => number {
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const reading = read();
    // The next larger double: the smallest step that a number of this size can take.
    last = reading > last ? reading : last + Math.max(Number.EPSILON * Math.abs(last) * 2, Number.MIN_VALUE);
    return last;
  };
}

/** Rejects NaN, which would corrupt the order of a clock's timers. */
export function checkedDelayMs(ms: number): number {
  if (Number.isNaN(ms)) {
    throw new KubelingError('BUG', 'Cannot wait as the delay must be a number of milliseconds: it is NaN');
  }
  return Math.max(0, ms);
}

/** The maximum delay of a Node.js timer: longer ones overflow and would fire immediately. */
const maxTimeoutMs = 2 ** 31 - 1;

/** The clock of the machine. */
export function realClock(): Clock {
  const clock: Clock = {
    now: () => instant(Date.now()),
    monotonicMs: () => performance.now(),
    stamp: strictlyIncreasing(() => performance.now()),
    sleep: (ms, signal) => sleepOn(clock, ms, signal),
    timer: realTimer,
  };
  return clock;
}

/**
 * Node.js truncates delays and rounds its own clock, so a timer may fire too early: it then waits
 * for the rest.
 */
function realTimer(ms: number, run: () => void): Timer {
  const dueMs = performance.now() + checkedDelayMs(ms);
  let handle: NodeJS.Timeout;
  const arm = () => {
    const leftMs = Math.max(0, Math.min(Math.ceil(dueMs - performance.now()), maxTimeoutMs));
    handle = setTimeout(() => (performance.now() < dueMs ? arm() : run()), leftMs);
  };
  arm();
  const cancel = () => clearTimeout(handle);
  return { cancel, [Symbol.dispose]: cancel };
}
