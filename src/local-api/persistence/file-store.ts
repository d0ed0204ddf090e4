import type { ApiResource } from '../../api/index.ts';
import type { SampledFamily } from '../../lib/index.ts';
import { type Clock, describeError, KubelingError, type Logger, withDeadline } from '../../lib/index.ts';
import type { StoredChange } from '../api/api-types.ts';
import type { Durability } from '../storage/durability.ts';
import { CommitQueue, type QueueLimits } from './commit-queue.ts';
import { Compaction, type LogLimits, WalCheckpointer } from './maintenance.ts';
import type { RestoredStore } from './restore.ts';
import type { StoreThread } from './store-thread.ts';
import type { FileStats, Opened, SyncLevel } from './worker/messages.ts';

/** Statistics of the store, for metrics. File sizes are those on the disk. */
export interface StoreStats extends FileStats {
  /** The number of transactions since the start; each syncs the disk at most once. */
  readonly commits: number;
  readonly failedCommits: number;
  /** The number of changes that are not committed yet. */
  readonly waiting: number;
  /** The number of log rows that compaction has removed since the start. */
  readonly compacted: number;
}

/** An open store file, whose lock is held until it is closed. */
export interface OpenedStore extends Durability, AsyncDisposable {
  /**
   * The content of the file when it was opened. Available only until the first change, so that it
   * does not stay in memory.
   */
  readonly restored: RestoredStore;
  /** The path of the previous file, if it was set aside. */
  readonly aside: string | undefined;
  /**
   * Why writes are rejected: the disk is full, the queue is full, or the store has failed. Callers
   * check it before each write.
   */
  writeProblem(): KubelingError | undefined;
  stats(): StoreStats;
  /** Commits the pending changes and releases the file. May be called twice. */
  close(signal: AbortSignal): Promise<void>;
}

export interface FileStoreDeps {
  readonly path: string;
  readonly aside: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly log: LogLimits;
  readonly queue: QueueLimits;
  readonly safetyOf: (resource: ApiResource) => SyncLevel;
  readonly onFailed: (error: KubelingError) => void;
  readonly thread: StoreThread;
  readonly unlock: () => Promise<void>;
  readonly opened: Opened;
  readonly restored: RestoredStore;
}

const closeMs = 10_000;

export class FileStore implements OpenedStore {
  readonly #deps: Omit<FileStoreDeps, 'opened' | 'restored'>;
  readonly #queue: CommitQueue;
  readonly #compaction: Compaction;
  readonly #checkpoints: WalCheckpointer;
  readonly #maintenance = new AbortController();
  readonly #storeTime: () => number;
  #restored: RestoredStore | undefined;
  #fileStats: FileStats;
  #closed: Promise<void> | undefined;

  constructor({ opened, restored, ...deps }: FileStoreDeps) {
    const { thread, clock, logger, path } = deps;
    this.#deps = deps;
    this.#restored = restored;
    this.#fileStats = opened.stats;
    this.#storeTime = storeTimeFrom(opened.ts, clock);
    const shared = { thread, clock, logger, storeTime: this.#storeTime };
    this.#compaction = new Compaction({
      ...shared,
      limits: deps.log,
      onStats: (stats) => this.#updateStats(stats),
    });
    this.#checkpoints = new WalCheckpointer(shared, this.#maintenance.signal);
    this.#queue = new CommitQueue(
      {
        ...shared,
        path,
        limits: deps.queue,
        safetyOf: deps.safetyOf,
        known: opened.facts.map(([name]) => name),
        onStats: (stats) => this.#updateStats(stats),
        onFailed: deps.onFailed,
      },
      restored.version,
    );
    void this.#compaction.run(this.#maintenance.signal);
  }

  get restored(): RestoredStore {
    if (this.#restored !== undefined) return this.#restored;
    throw new KubelingError('BUG', 'Cannot restore from the store as it was changed since it was opened');
  }

  get aside(): string | undefined {
    return this.#deps.aside;
  }

  get committed(): number {
    return this.#queue.committed;
  }

  get acceptsWrites(): boolean {
    return this.#queue.acceptsWrites;
  }

  append(change: StoredChange): void {
    this.#restored = undefined;
    this.#queue.append(change);
  }

  whenCommitted(version: number, signal: AbortSignal): Promise<void> {
    return this.#queue.whenCommitted(version, signal);
  }

  onCommitted(listener: (version: number) => void): Disposable {
    return this.#queue.onCommitted(listener);
  }

  writeProblem(): KubelingError | undefined {
    return this.#queue.writeProblem();
  }

  stats(): StoreStats {
    const { commits, failures, waiting } = this.#queue.stats;
    return {
      ...this.#fileStats,
      commits,
      failedCommits: failures,
      waiting,
      compacted: this.#compaction.removed,
    };
  }

  /** Marks the store as failed permanently. */
  fail(error: KubelingError): void {
    this.#maintenance.abort(error);
    this.#queue.fail(error);
  }

  close(signal: AbortSignal): Promise<void> {
    this.#closed ??= this.#close(signal);
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(new AbortController().signal);
  }

  async #close(signal: AbortSignal): Promise<void> {
    const { clock, logger, path } = this.#deps;
    const ended = new KubelingError('STORE_ENDED', `Cannot write to the store ${path} as it is closed`);
    this.#maintenance.abort(ended);
    try {
      await withDeadline(
        { clock, ms: closeMs, what: `close the store ${path}` },
        (s) => this.#finish(ended, s),
        signal,
      );
    } catch (error) {
      const { waiting } = this.#queue.stats;
      logger.warn('Store did not close in time', { path, waiting, err: describeError(error) });
    } finally {
      this.#queue.end(ended);
      await this.#releaseLock();
    }
  }

  /** A thread that is blocked by its disk keeps the lock until the process exits. */
  async #releaseLock(): Promise<void> {
    const { clock, thread, unlock, logger, path } = this.#deps;
    const deadline = { clock, ms: closeMs, what: 'end the thread of the store' };
    try {
      await withDeadline(deadline, () => thread.terminate(), new AbortController().signal);
      await unlock();
    } catch (error) {
      logger.error('Failed to release the store lock', error, { path });
    }
  }

  async #finish(ended: KubelingError, signal: AbortSignal): Promise<void> {
    await this.#queue.whenCommitted(Number.POSITIVE_INFINITY, signal);
    const revision = this.#queue.committed;
    this.#queue.end(ended);
    this.#updateStats(await this.#deps.thread.call({ do: 'close', revision, ts: this.#storeTime() }, signal));
  }

  #updateStats(stats: FileStats): void {
    this.#fileStats = stats;
    this.#compaction.onFileStats(stats);
    this.#checkpoints.onFileStats(stats);
  }
}

/**
 * The store time: how long the store was open, continued across restarts. Changes are dated with
 * it, so that clock jumps do not affect compaction.
 */
function storeTimeFrom(lastMs: number, clock: Clock): () => number {
  const startMs = clock.monotonicMs();
  return () => Math.round(lastMs + clock.monotonicMs() - startMs);
}

/** The storage metrics of kube-apiserver and further metrics of this store. */
export function storeMetrics(stats: StoreStats): readonly SampledFamily[] {
  const { fileBytes, walBytes } = stats;
  return [
    {
      name: 'apiserver_storage_size_bytes',
      type: 'gauge',
      help: 'Size of the store on disk in bytes.',
      samples: [{ labels: { storage_cluster_id: 'local' }, value: fileBytes + walBytes }],
    },
    one('gauge', 'kubeling_store_objects', 'Objects in the store.', stats.objects),
    one('gauge', 'kubeling_store_file_bytes', 'Size of the store file in bytes.', fileBytes),
    one('gauge', 'kubeling_store_ahead_bytes', 'Size of the write-ahead log in bytes.', walBytes),
    one('gauge', 'kubeling_store_changes', 'Changes retained for watches.', stats.logRows),
    one('gauge', 'kubeling_store_change_bytes', 'Size of the retained changes in bytes.', stats.logBytes),
    one('gauge', 'kubeling_store_waiting_changes', 'Changes not committed yet.', stats.waiting),
    one('counter', 'kubeling_store_commits_total', 'Transactions since the start.', stats.commits),
    one(
      'counter',
      'kubeling_store_failed_commits_total',
      'Failed transactions since the start.',
      stats.failedCommits,
    ),
    one('counter', 'kubeling_store_forgotten_changes_total', 'Changes forgotten.', stats.compacted),
  ];
}

function one(type: 'gauge' | 'counter', name: string, help: string, value: number): SampledFamily {
  return { name, type, help, samples: [{ value }] };
}
