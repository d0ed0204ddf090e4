import { type Clock, KubelingError, LinkedController, type Timer } from '../../lib/index.ts';

/** A watch that requested initial objects is aborted if it delivers none for this long. */
const longestSilenceMs = 30_000;

/**
 * A watch that is still open this long after its requested end is aborted: its server is considered
 * lost.
 */
const graceAfterEndMs = 30_000;

/**
 * Aborts a watch that does not deliver its initial objects, or that is open long after its
 * requested end.
 */
export class WatchLimits implements Disposable {
  readonly #clock: Clock;
  readonly #controller: LinkedController;
  readonly #end: Timer;
  #silence: Timer | undefined;

  constructor(clock: Clock, timeoutSeconds: number, parent: AbortSignal) {
    this.#clock = clock;
    this.#controller = new LinkedController(parent);
    this.#end = clock.timer(timeoutSeconds * 1_000 + graceAfterEndMs, () =>
      this.#abort('API_DEADLINE', `Aborted a watch that did not end after ${timeoutSeconds} s`),
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the watch unless an event arrives in time; every call restarts the timer. */
  expectSomething(): void {
    this.#silence?.cancel();
    this.#silence = this.#clock.timer(longestSilenceMs, () =>
      this.#abort(
        'API_UNSUPPORTED',
        `Cannot read existing objects as nothing was received for ${longestSilenceMs / 1_000} s`,
      ),
    );
  }

  /** Stops requiring events: the initial objects are complete. */
  expectNothing(): void {
    this.#silence?.cancel();
    this.#silence = undefined;
  }

  [Symbol.dispose](): void {
    this.expectNothing();
    this.#end.cancel();
    this.#controller[Symbol.dispose]();
  }

  #abort(code: 'API_DEADLINE' | 'API_UNSUPPORTED', message: string): void {
    this.#controller.abort(new KubelingError(code, message));
  }
}
