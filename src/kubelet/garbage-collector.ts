import { type Clock, type Logger, onAbort } from '../lib/index.ts';

export interface GarbageCollectorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly collect: (signal: AbortSignal) => Promise<void>;
}

const periodMs = 60_000;

/** Removes what dead containers have left, one round at a time: a minute apart, or at once when somebody knows of some. */
export class GarbageCollector {
  readonly #deps: GarbageCollectorDeps;
  #wanted = false;
  #wake: (() => void) | undefined;

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
  }

  collectSoon(): void {
    this.#wanted = true;
    this.#wake?.();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#wait(signal);
      if (signal.aborted) return;
      this.#wanted = false;
      await this.#deps.collect(signal).catch((error) => {
        if (!signal.aborted) this.#deps.logger.error('Cannot remove dead containers', error);
      });
    }
  }

  async #wait(signal: AbortSignal): Promise<void> {
    if (this.#wanted || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    using _ending = onAbort(signal, () => resolve());
    const timer = this.#deps.clock.timer(periodMs, resolve);
    this.#wake = resolve;
    await promise;
    timer.cancel();
    this.#wake = undefined;
  }
}
