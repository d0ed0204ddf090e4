import { type Clock, HintLatch, type Logger } from '../../lib/index.ts';
import type { StoreCaller } from './store-thread.ts';
import type { FileFigures } from './worker/messages.ts';

export interface LogLimits {
  /** What happened within this time is kept, so that a watch may go on where it was. */
  readonly keepMs: number;
  /** However young it is, no more than this is kept: the file must not grow with the zeal of a client. */
  readonly keepRows: number;
  readonly keepBytes: number;
}

export interface CompactionDeps {
  readonly thread: StoreCaller;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: LogLimits;
  readonly storeTime: () => number;
  readonly onFigures: (figures: FileFigures) => void;
}

const everyMs = 60_000;
/** Over its limits by this share, the log is not left for the next minute. */
const urgentShare = 0.25;

/** Forgets what is old, a small batch at a time: whoever writes waits for one of them at most. */
export class Compaction {
  readonly #deps: CompactionDeps;
  readonly #hint: HintLatch;
  #removed = 0;

  constructor(deps: CompactionDeps) {
    this.#deps = deps;
    this.#hint = new HintLatch(deps.clock);
  }

  /** Rows of the log that were removed so far. */
  get removed(): number {
    return this.#removed;
  }

  /** Told how the file is after each write. */
  look({ logRows, logBytes }: FileFigures): void {
    const { keepRows, keepBytes } = this.#deps.limits;
    const most = 1 + urgentShare;
    if (logRows > keepRows * most || logBytes > keepBytes * most) this.#hint.raise();
  }

  /** Ends with the signal, without an error. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#hint.wait(everyMs, signal);
        await this.compact(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.logger.error('the log of the store cannot be compacted', error);
      }
    }
  }

  async compact(signal: AbortSignal): Promise<void> {
    const { thread, limits, storeTime, onFigures } = this.#deps;
    const { keepRows, keepBytes } = limits;
    const olderThan = storeTime() - limits.keepMs;
    // Now, not later: what is said from here on may be about what comes after this.
    this.#hint.clear();
    for (let more = true; more; ) {
      const done = await thread.call({ do: 'compact', olderThan, keepRows, keepBytes }, signal);
      this.#removed += done.removed;
      more = done.more;
      onFigures(done.figures);
      if (!more && done.figures.walBytes > 0) await this.#tidy(signal);
    }
  }

  /** Where nothing was written there is nothing to tidy, and the disk is left to sleep. */
  async #tidy(signal: AbortSignal): Promise<void> {
    const { thread, onFigures } = this.#deps;
    for (let more = true; more; ) {
      const done = await thread.call({ do: 'tidy' }, signal);
      more = done.more;
      onFigures(done.figures);
    }
  }
}
