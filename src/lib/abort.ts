import type { Clock } from './clock.ts';
import { KubelingError } from './errors.ts';

/**
 * Calls the listener once when the signal is aborted, or immediately if it is already aborted. The
 * caller must dispose of the result, which removes the listener.
 */
export function onAbort(signal: AbortSignal, then: (reason: unknown) => void): Disposable {
  if (signal.aborted) {
    then(signal.reason);
    return { [Symbol.dispose]: () => {} };
  }
  const listener = () => then(signal.reason);
  signal.addEventListener('abort', listener, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', listener) };
}

/**
 * A controller that is aborted together with its parent until it is disposed. It keeps one listener
 * on the parent, so its creator must dispose of it when the operation ends.
 */
export class LinkedController implements Disposable {
  readonly #controller = new AbortController();
  readonly #link: Disposable;

  constructor(parent: AbortSignal) {
    this.#link = onAbort(parent, (reason) => this.#controller.abort(reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  [Symbol.dispose](): void {
    this.#link[Symbol.dispose]();
  }
}

/** Rejects with the signal's reason when the signal is aborted; never resolves. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    // The abort listener stays for the life of the signal and is collected with it.
    onAbort(signal, reject);
  });
}

/**
 * Settles like the promise, or rejects with the signal's reason if the signal is aborted first. The
 * work behind the promise continues unless it listens to the signal too. Do not use it for a
 * promise that outlives many calls: each call stays attached to the promise until it settles.
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const link = onAbort(signal, reject);
    promise.then(
      (value) => {
        link[Symbol.dispose]();
        resolve(value);
      },
      (error) => {
        link[Symbol.dispose]();
        reject(error);
      },
    );
  });
}

/**
 * Runs several operations concurrently: when one of them fails, the signal of the others is
 * aborted.
 */
export async function allOrAbort<T>(
  work: (signal: AbortSignal) => Promise<T>,
  parent: AbortSignal,
): Promise<T> {
  using controller = new LinkedController(parent);
  try {
    return await work(controller.signal);
  } catch (error) {
    controller.abort(cancelledError('Another concurrent operation failed'));
    throw error;
  }
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly ms: number;
  /** Describes the work in the error message: "Cannot <what> within 2000 ms". */
  readonly what: string;
}

/**
 * Runs the work with a signal that is aborted by the parent or by the deadline, whichever is first,
 * and rejects at that moment even if the work ignores its signal. If the parent is already aborted
 * the work is not started. Leaves no timer and no listener. When the work fails its signal is
 * aborted, so that operations it started concurrently do not continue under a signal that no caller
 * can abort.
 */
export async function withDeadline<T>(
  options: DeadlineOptions,
  work: (signal: AbortSignal) => Promise<T>,
  parent: AbortSignal,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  let giveUp = (_reason: unknown): void => {};
  // The work's signal is aborted before the caller's promise rejects; the clean-up of the work is
  // not awaited.
  const abort = (reason: unknown) => {
    controller.abort(reason);
    giveUp(reason);
  };
  using _link = onAbort(parent, abort);
  using _timer = options.clock.timer(options.ms, () =>
    abort(new KubelingError('DEADLINE_EXCEEDED', `Cannot ${options.what} within ${options.ms} ms`)),
  );
  try {
    return await new Promise<T>((resolve, reject) => {
      giveUp = reject;
      work(controller.signal).then(resolve, reject);
    });
  } catch (error) {
    controller.abort(cancelledError(`Another operation failed: ${options.what}`));
    throw error;
  }
}

export interface AbortGraceOptions {
  readonly clock: Clock;
  /** Returns the grace period; called when the parent is aborted. */
  readonly ms: () => number;
}

/**
 * Runs work that should be allowed to finish: its signal is aborted `ms` after the parent is. If
 * the parent is already aborted the work is not started.
 */
export async function withAbortGrace<T>(
  { clock, ms }: AbortGraceOptions,
  work: (signal: AbortSignal) => Promise<T>,
  parent: AbortSignal,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  using timers = new DisposableStack();
  using _link = onAbort(parent, (reason) => {
    const leftMs = ms();
    if (leftMs > 0) timers.use(clock.timer(leftMs, () => controller.abort(reason)));
    else controller.abort(reason);
  });
  return await work(controller.signal);
}

/** The abort reason for a task that is cancelled on purpose. */
export function cancelledError(why: string): KubelingError {
  return new KubelingError('CANCELLED', why);
}
