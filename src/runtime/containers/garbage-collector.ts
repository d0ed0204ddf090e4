import type { NodeJournal } from '../../journal/index.ts';
import { type Clock, describeError, HintLatch } from '../../lib/index.ts';
import type { GcScope } from './container-gc.ts';

export interface GarbageCollectorDeps {
  readonly clock: Clock;
  readonly node: Pick<NodeJournal, 'problem' | 'recovered'>;
  /** Collects garbage once; calls are never concurrent. */
  readonly collect: (scope: GcScope, signal: AbortSignal) => Promise<void>;
}

const periodMs = 60_000;
const problemKey = 'container garbage';

/** Runs garbage collections serially: every minute, or immediately when a container died. */
export class GarbageCollector {
  readonly #deps: GarbageCollectorDeps;
  readonly #requested: HintLatch;
  /** Resolves when no collection is running; never rejects. */
  #working = Promise.resolve();

  constructor(deps: GarbageCollectorDeps) {
    this.#deps = deps;
    this.#requested = new HintLatch(deps.clock);
  }

  collectSoon(): void {
    this.#requested.raise();
  }

  /** Collects garbage immediately, for eviction. Rejects when an object could not be removed. */
  async collectNow(scope: GcScope, signal: AbortSignal): Promise<void> {
    const work = this.#working.then(async () => {
      signal.throwIfAborted();
      await this.#deps.collect(scope, signal);
    });
    this.#working = work.catch(() => {});
    await work;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#requested.wait(periodMs, signal).catch(() => {});
      if (signal.aborted) return;
      this.#requested.clear();
      await this.#round(signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { node } = this.#deps;
    try {
      await this.collectNow('deleted-pods', signal);
      node.recovered(problemKey, 'Dead containers are removed again');
    } catch (error) {
      if (signal.aborted) return;
      const message = describeError(error);
      node.problem(problemKey, { type: 'Warning', reason: 'ContainerGCFailed', message });
    }
  }
}
