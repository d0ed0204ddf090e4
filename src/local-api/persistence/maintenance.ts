import { type Clock, HintLatch, type Logger, onAbort, type Timer } from '../../lib/index.ts';
import type { StoreClient } from './store-thread.ts';
import type { FileStats } from './worker/messages.ts';

export interface LogLimits {
  /** The age up to which changes are retained, so that watches can resume. */
  readonly keepMs: number;
  /**
   * The maximum number of retained changes of any age, so that a busy client cannot grow the file.
   */
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
/** The share by which the log may exceed its limits before it is compacted immediately. */
const urgentShare = 0.25;

/**
 * Removes old changes from the log in small batches, so that a write waits for at most one batch.
 */
export class Compaction {
  readonly #deps: CompactionDeps;
  readonly #hint: HintLatch;
  #removed = 0;

  constructor(deps: CompactionDeps) {
    this.#deps = deps;
    this.#hint = new HintLatch(deps.clock);
  }

  /** The number of log rows removed since the start. */
  get removed(): number {
    return this.#removed;
  }

  /** Requests a compaction if the log is too large; called after each write. */
  onFileStats({ logRows, logBytes }: FileStats): void {
    const { keepRows, keepBytes } = this.#deps.limits;
    const most = 1 + urgentShare;
    if (logRows > keepRows * most || logBytes > keepBytes * most) this.#hint.raise();
  }

  /** Compacts the log periodically until the signal is aborted; then resolves without an error. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#hint.wait(everyMs, signal);
        await this.compact(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.logger.error('Failed to compact the store log', error);
      }
    }
  }

  async compact(signal: AbortSignal): Promise<void> {
    const { thread, limits, storeTime, onStats } = this.#deps;
    const { keepRows, keepBytes } = limits;
    const olderThan = storeTime() - limits.keepMs;
    // The request for a compaction is cleared before the compaction starts, so that requests made
    // during it are not lost.
    this.#hint.clear();
    for (let more = true; more; ) {
      const done = await thread.call({ do: 'compact', olderThan, keepRows, keepBytes }, signal);
      this.#removed += done.removed;
      more = done.more;
      onStats(done.stats);
      if (!more && done.stats.walBytes > 0) await this.#vacuum(signal);
    }
  }

  /**
   * Returns free pages to the file system. Called only after writes, so that an idle store does not
   * access the disk.
   */
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

/** The size above which the write-ahead log is checkpointed when there are no writes. */
const checkpointBytes = 1024 * 1024;
const quietMs = 100;
/**
 * The size above which the write-ahead log is checkpointed immediately. Writes wait for the
 * checkpoint, so it must be short.
 */
const maxWalBytes = 4 * 1024 * 1024;

/**
 * Decides when the write-ahead log is checkpointed into the file, which needs several disk syncs:
 * if possible while there are no writes. Ends when the signal is aborted.
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

  /** Schedules a checkpoint if the write-ahead log is large; called after each write. */
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
      // A failed checkpoint is retried after the next write: the changes are safe in the
      // write-ahead log.
      if (!this.#signal.aborted) this.#deps.logger.error('Failed to checkpoint the store', error);
    } finally {
      this.#state = 'idle';
    }
  }
}
