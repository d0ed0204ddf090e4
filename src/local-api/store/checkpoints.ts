import { type Clock, type Logger, onAbort, type Timer } from '../../lib/index.ts';
import type { StoreCaller } from './store-thread.ts';
import type { FileFigures } from './worker/messages.ts';

export interface CheckpointDeps {
  readonly thread: StoreCaller;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Written ahead, this much waits for a quiet moment to be brought into the file itself. */
const worthBytes = 1024 * 1024;
const quietMs = 100;
/** With this much it cannot wait. Who writes meanwhile waits for it, so it must not take long. */
const mostBytes = 4 * 1024 * 1024;

/**
 * Decides when what was written ahead is brought into the file, which takes several syncs of the disk: while nobody
 * writes, if such a moment comes in time. Ends with the signal.
 */
export class Checkpoints {
  readonly #deps: CheckpointDeps;
  readonly #signal: AbortSignal;
  #quiet: Timer | undefined;
  #state: 'idle' | 'asked' = 'idle';

  constructor(deps: CheckpointDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    onAbort(signal, () => this.#quiet?.cancel());
  }

  /** Told how the file is after each write. */
  look({ aheadBytes }: FileFigures): void {
    this.#quiet?.cancel();
    if (this.#signal.aborted || this.#state === 'asked' || aheadBytes < worthBytes) return;
    if (aheadBytes >= mostBytes) void this.#ask();
    else this.#quiet = this.#deps.clock.timer(quietMs, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    this.#state = 'asked';
    try {
      await this.#deps.thread.call({ do: 'checkpoint' }, this.#signal);
    } catch (error) {
      // What was written ahead is as safe there; the next write asks again.
      if (!this.#signal.aborted) this.#deps.logger.error('the store cannot be brought up to date', error);
    } finally {
      this.#state = 'idle';
    }
  }
}
