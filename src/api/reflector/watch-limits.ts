import { type Clock, KubelingError, LinkedController, type Timer } from '../../lib/index.ts';

/** A watch without initial objects for this long does not deliver them. */
const longestSilenceMs = 30_000;

/** A watch that is open this long after its end has lost the server. */
const graceAfterEndMs = 30_000;

/**
 * Aborts a stalled watch: without initial objects, or still open long after it should have ended.
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

  /** From now on, and from each call on, an event must arrive in time. */
  expectSomething(): void {
    this.#silence?.cancel();
    this.#silence = this.#clock.timer(longestSilenceMs, () =>
      this.#abort(
        'API_UNSUPPORTED',
        `Cannot read existing objects as nothing was received for ${longestSilenceMs / 1_000} s`,
      ),
    );
  }

  /** From now on no events are required. */
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
