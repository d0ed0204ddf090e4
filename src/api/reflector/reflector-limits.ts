import { type Clock, KubelingError, LinkedController, type Timer } from '../../lib/index.ts';

/** A watch that should begin with what there is, and is silent for so long, does not do so. */
export const longestSilenceMs = 30_000;

/** So long after its own end a watch that is still open has lost the other side. */
export const graceAfterEndMs = 30_000;

/** Ends a watch the server forgot: silent where it should tell what there is, or open long after it should have ended. */
export class WatchLimits implements Disposable {
  readonly #clock: Clock;
  readonly #controller: LinkedController;
  readonly #end: Timer;
  #silence: Timer | undefined;

  constructor(clock: Clock, timeoutSeconds: number, parent: AbortSignal) {
    this.#clock = clock;
    this.#controller = new LinkedController(parent);
    this.#end = clock.timer(timeoutSeconds * 1_000 + graceAfterEndMs, () =>
      this.#abort('API_DEADLINE', `Cannot follow a watch that did not end after ${timeoutSeconds} s`),
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** From now on, and from each call on, something must come in time. */
  expectSomething(): void {
    this.#silence?.cancel();
    this.#silence = this.#clock.timer(longestSilenceMs, () =>
      this.#abort(
        'API_UNSUPPORTED',
        `Cannot take in what there is as nothing came for ${longestSilenceMs / 1_000} s`,
      ),
    );
  }

  /** From now on silence is fine. */
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
