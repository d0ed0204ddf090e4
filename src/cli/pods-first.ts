import { KubelingError, onAbort } from '../lib/index.ts';
import { sigterm } from './process-events.ts';

/**
 * A signal that follows another, but when the system asks us to end (SIGTERM) only once the pods have ended: whoever
 * serves them must be there until then. A second one ends us at once all the same.
 */
export class PodsFirst implements Disposable {
  readonly #controller = new AbortController();
  readonly #link: Disposable;

  /** Ends nothing before the given work is done, which never rejects. */
  constructor(parent: AbortSignal, endPods: (signal: AbortSignal) => Promise<void>) {
    this.#link = onAbort(parent, (reason) => {
      if (!isSigterm(reason)) return this.#controller.abort(reason);
      void endPods(this.#controller.signal).finally(() => this.#controller.abort(reason));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    this.#link[Symbol.dispose]();
  }
}

function isSigterm(reason: unknown): boolean {
  return reason instanceof KubelingError && reason.message === sigterm;
}
