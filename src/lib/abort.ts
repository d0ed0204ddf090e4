import type { Clock } from './clock.ts';
import { KubelingError } from './errors.ts';

/**
 * Runs `then` once when the signal is aborted, at once when it already is. Disposing removes the listener;
 * whoever calls this owns the disposal.
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
 * A controller that is aborted together with its parent until it is disposed. It keeps one listener on the parent,
 * so whoever makes one disposes of it when its operation ends.
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

/** Rejects with the signal's reason, and before that does nothing. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    // One listener for the whole life of the signal, which goes with it.
    onAbort(signal, reject);
  });
}

/**
 * Settles as the promise does, or rejects with the signal's reason if that comes first. The work behind the promise
 * goes on unless it listens to the signal too. Not for a promise that outlives many calls: each call stays attached
 * to it until it settles.
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

/** For work that begins several things at once: when one of them fails the others are given up, not left to themselves. */
export async function allOrAbort<T>(
  work: (signal: AbortSignal) => Promise<T>,
  parent: AbortSignal,
): Promise<T> {
  using controller = new LinkedController(parent);
  try {
    return await work(controller.signal);
  } catch (error) {
    controller.abort(cancelledError('Another part of it failed'));
    throw error;
  }
}

export interface DeadlineOptions {
  readonly clock: Clock;
  readonly ms: number;
  /** Names the work in the error: "Cannot <what> within 2000 ms". */
  readonly what: string;
}

/**
 * Runs the work with a signal that is aborted by the parent or by the deadline, whichever is first, and rejects as
 * soon as that happens even if the work does not listen. With a parent already aborted the work is not started.
 * Leaves no timer and no listener behind. When the work fails its signal is aborted: of several things it began at
 * once none goes on under a signal that nobody can abort any more.
 */
export async function withDeadline<T>(
  options: DeadlineOptions,
  work: (signal: AbortSignal) => Promise<T>,
  parent: AbortSignal,
): Promise<T> {
  parent.throwIfAborted();
  const controller = new AbortController();
  let giveUp = (_reason: unknown): void => {};
  // Whoever works hears of it first, and nobody waits for what they do about it.
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
    controller.abort(cancelledError(`Part of it failed: ${options.what}`));
    throw error;
  }
}

export interface AbortGraceOptions {
  readonly clock: Clock;
  /** How long, asked when the parent is aborted. */
  readonly ms: () => number;
}

/**
 * Runs work that is better waited for than broken off: its signal is aborted only `ms` after the parent is. With a
 * parent already aborted the work is not started.
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

/** The reason to give when a task is abandoned on purpose. */
export function cancelledError(why: string): KubelingError {
  return new KubelingError('CANCELLED', why);
}
