import type { ApiResource } from '../../api/index.ts';
import type { SampledFamily } from '../../lib/index.ts';
import { type Clock, describeError, KubelingError, type Logger, withDeadline } from '../../lib/index.ts';
import type { ObjectChange } from '../api/api-types.ts';
import type { Durability } from '../storage/durability.ts';
import { CommitQueue, type QueueLimits } from './commit-queue.ts';
import { Compaction, type LogLimits, WalCheckpointer } from './maintenance.ts';
import type { RestoredStore } from './restore.ts';
import type { StoreThread } from './store-thread.ts';
import type { FileStats, Opened, SyncLevel } from './worker/messages.ts';

/** For metrics. Bytes of the file and of its side file are those on the disk. */
export interface StoreStats extends FileStats {
  /** Transactions since it was opened; each was one sync of the disk, or none. */
  readonly commits: number;
  readonly failedCommits: number;
  /** Changes that are not written yet. */
  readonly waiting: number;
  /** Rows of the log that were removed since it was opened. */
  readonly compacted: number;
}

/** A store that is open. It has the file for itself until it is closed. */
export interface OpenedStore extends Durability, AsyncDisposable {
  /** As it was when it was opened. Only until the first change: then nothing here keeps it alive any more. */
  readonly restored: RestoredStore;
  /** Where the file is now that was there before, if it had to make room. */
  readonly aside: string | undefined;
  /** Why no write should be begun now: the disk is full, too much waits, or it has ended. Ask before each. */
  writeProblem(): KubelingError | undefined;
  stats(): StoreStats;
  /** Writes what waits, and lets go of the file. May be called twice. */
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

  append(change: ObjectChange): void {
    this.#restored = undefined;
    this.#queue.append(change);
  }

  whenCommitted(version: number, signal: AbortSignal): Promise<void> {
    return this.#queue.whenCommitted(version, signal);
  }

  onCommitted(told: (version: number) => void): Disposable {
    return this.#queue.onCommitted(told);
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

  /** Nothing can be written any more. */
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
      logger.warn('the store was not closed in order', { path, waiting, err: describeError(error) });
    } finally {
      this.#queue.end(ended);
      await this.#releaseLock();
    }
  }

  /** A thread that hangs on its disk keeps the lock, which then ends with the process. */
  async #releaseLock(): Promise<void> {
    const { clock, thread, unlock, logger, path } = this.#deps;
    const deadline = { clock, ms: closeMs, what: 'end the thread of the store' };
    try {
      await withDeadline(deadline, () => thread.terminate(), new AbortController().signal);
      await unlock();
    } catch (error) {
      logger.error('the store keeps its lock', error, { path });
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
 * The age of changes is counted in the time the store was open, and goes on at the next start where it was: then
 * no jump of the clock, forth or back, makes anything old or keeps it young.
 */
function storeTimeFrom(lastMs: number, clock: Clock): () => number {
  const startMs = clock.monotonicMs();
  return () => Math.round(lastMs + clock.monotonicMs() - startMs);
}

/** What dashboards of API servers ask a store for, and what else there is to know of this one. */
export function storeMetrics(stats: StoreStats): readonly SampledFamily[] {
  const { fileBytes, walBytes } = stats;
  return [
    {
      name: 'apiserver_storage_size_bytes',
      type: 'gauge',
      help: 'Bytes the store has on its disk.',
      samples: [{ labels: { storage_cluster_id: 'local' }, value: fileBytes + walBytes }],
    },
    one('gauge', 'kubeling_store_objects', 'Objects in the store.', stats.objects),
    one('gauge', 'kubeling_store_file_bytes', 'Bytes of its file.', fileBytes),
    one('gauge', 'kubeling_store_ahead_bytes', 'Bytes of what it wrote ahead of its file.', walBytes),
    one('gauge', 'kubeling_store_changes', 'Changes it remembers for watchers.', stats.logRows),
    one('gauge', 'kubeling_store_change_bytes', 'Bytes of these changes.', stats.logBytes),
    one('gauge', 'kubeling_store_waiting_changes', 'Changes not written yet.', stats.waiting),
    one('counter', 'kubeling_store_commits_total', 'Transactions since the start.', stats.commits),
    one('counter', 'kubeling_store_failed_commits_total', 'Those that failed.', stats.failedCommits),
    one('counter', 'kubeling_store_forgotten_changes_total', 'Changes forgotten.', stats.compacted),
  ];
}

function one(type: 'gauge' | 'counter', name: string, help: string, value: number): SampledFamily {
  return { name, type, help, samples: [{ value }] };
}
