import { type Clock, HintLatch, type Logger, onAbort, type Timer } from '../../lib/index.ts';
import type { StoreClient } from './store-thread.ts';
import type { FileStats } from './worker/messages.ts';

export interface LogLimits {
  /** What happened within this time is kept, so that a watch may go on where it was. */
  readonly keepMs: number;
  /** However young it is, no more than this is kept: the file must not grow with the zeal of a client. */
  readonly keepRows: number;
  readonly keepBytes: number;
}

export interface CompactionDeps {
  readonly thread: StoreClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: LogLimits;
  readonly storeTime: () => number;
  readonly onStats: (stats: FileStats) => void;
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
  onFileStats({ logRows, logBytes }: FileStats): void {
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
    const { thread, limits, storeTime, onStats } = this.#deps;
    const { keepRows, keepBytes } = limits;
    const olderThan = storeTime() - limits.keepMs;
    // Now, not later: what is said from here on may be about what comes after this.
    this.#hint.clear();
    for (let more = true; more; ) {
      const done = await thread.call({ do: 'compact', olderThan, keepRows, keepBytes }, signal);
      this.#removed += done.removed;
      more = done.more;
      onStats(done.stats);
      if (!more && done.stats.walBytes > 0) await this.#vacuum(signal);
    }
  }

  /** Where nothing was written there is nothing to tidy, and the disk is left to sleep. */
  async #vacuum(signal: AbortSignal): Promise<void> {
    const { thread, onStats } = this.#deps;
    for (let more = true; more; ) {
      const done = await thread.call({ do: 'tidy' }, signal);
      more = done.more;
      onStats(done.stats);
    }
  }
}

export interface WalCheckpointerDeps {
  readonly thread: StoreClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Written ahead, this much waits for a quiet moment to be brought into the file itself. */
const checkpointBytes = 1024 * 1024;
const quietMs = 100;
/** With this much it cannot wait. Who writes meanwhile waits for it, so it must not take long. */
const maxWalBytes = 4 * 1024 * 1024;

/**
 * Decides when what was written ahead is brought into the file, which takes several syncs of the disk: while nobody
 * writes, if such a moment comes in time. Ends with the signal.
 */
export class WalCheckpointer {
  readonly #deps: WalCheckpointerDeps;
  readonly #signal: AbortSignal;
  #quiet: Timer | undefined;
  #state: 'idle' | 'asked' = 'idle';

  constructor(deps: WalCheckpointerDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    onAbort(signal, () => this.#quiet?.cancel());
  }

  /** Told how the file is after each write. */
  onFileStats({ aheadBytes }: FileStats): void {
    this.#quiet?.cancel();
    if (this.#signal.aborted || this.#state === 'asked' || aheadBytes < checkpointBytes) return;
    if (aheadBytes >= maxWalBytes) void this.#checkpoint();
    else this.#quiet = this.#deps.clock.timer(quietMs, () => void this.#checkpoint());
  }

  async #checkpoint(): Promise<void> {
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
