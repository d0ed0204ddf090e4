import type { ApiResource } from '../../api/index.ts';
import { type Clock, KubelingError, type Logger, onAbort, type Timer, TypedEvents } from '../../lib/index.ts';
import type { StoredChange } from '../api/api-types.ts';
import type { Durability } from '../storage/durability.ts';
import { resourceName, rowOf } from './restore.ts';
import { StoreCallError, type StoreClient } from './store-thread.ts';
import type { ChangeRow, CommitRequest, FileStats, SyncLevel } from './worker/messages.ts';

export interface QueueLimits {
  /** The maximum number of pending changes; above it new writes are rejected. */
  readonly rows: number;
  readonly bytes: number;
}

export interface QueueDeps {
  readonly thread: StoreClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly path: string;
  readonly limits: QueueLimits;
  /** The current store time: monotonic, and continued across restarts. */
  readonly storeTime: () => number;
  /** The sync level that a change of the resource must reach before its request is answered. */
  readonly safetyOf: (resource: ApiResource) => SyncLevel;
  /** The resource definitions that the file already contains. */
  readonly known: Iterable<string>;
  readonly onStats: (stats: FileStats) => void;
  /** Called once, when the store has failed permanently. */
  readonly onFailed: (error: KubelingError) => void;
}

interface Pending {
  readonly row: ChangeRow;
  readonly safety: SyncLevel;
  readonly resource: ApiResource;
}

/** The maximum number of changes in one transaction; a longer queue is written in several. */
const batchRows = 1_000;
const batchBytes = 4 * 1024 * 1024;
const firstRetryMs = 250;
const longestRetryMs = 5_000;
/**
 * Above this multiple of the limits the store fails, because only a writer that ignores the
 * back-pressure can exceed the limits so far.
 */
const overflow = 4;

/**
 * Writes changes to the file in batches:
 *
 *     append ──> pending ──(one batch at a time)──> thread ──> committed
 *                   ^                                   │
 *                   └─ failed: waiters fail, and retry ─┘
 *
 * Changes that arrive during a commit form the next batch, so that more changes share one disk sync
 * under load. An appended change has already happened in memory, so it is never dropped, not even
 * when the disk is full.
 */
export class CommitQueue implements Durability {
  readonly #deps: QueueDeps;
  readonly #events = new TypedEvents<{ committed: number }>((error) =>
    this.#deps.logger.error('Commit listener failed', error),
  );
  readonly #known: Set<string>;
  readonly #waiters = new VersionWaiters();
  /** Aborts the calls to the store thread when the queue ends. */
  readonly #lifetime = new AbortController();
  #pending: Pending[] = [];
  #pendingBytes = 0;
  #inFlight: readonly Pending[] = [];
  #isScheduled = false;
  #appended: number;
  #committed: number;
  #commits = 0;
  #failures = 0;
  #failuresInRow = 0;
  #failure: KubelingError | undefined;
  #ended: KubelingError | undefined;
  #retry: Timer | undefined;

  constructor(deps: QueueDeps, version: number) {
    this.#deps = deps;
    this.#known = new Set(deps.known);
    this.#appended = version;
    this.#committed = version;
  }

  get committed(): number {
    return this.#committed;
  }

  get stats(): { readonly commits: number; readonly failures: number; readonly waiting: number } {
    return {
      commits: this.#commits,
      failures: this.#failures,
      waiting: this.#pending.length + this.#inFlight.length,
    };
  }

  /**
   * Whether bulk writers may write: false at half of the limits, so that they do not cause the
   * rejection of client requests.
   */
  get acceptsWrites(): boolean {
    if (this.#ended !== undefined || this.#failure !== undefined) return false;
    const { rows, bytes } = this.#deps.limits;
    return this.#pending.length < rows / 2 && this.#pendingBytes < bytes / 2;
  }

  /** Why writes are rejected at the moment; undefined if they are accepted. */
  writeProblem(): KubelingError | undefined {
    const problem = this.#ended ?? this.#failure;
    if (problem !== undefined) return problem;
    const { rows, bytes } = this.#deps.limits;
    if (this.#pending.length < rows && this.#pendingBytes < bytes) return undefined;
    return new KubelingError(
      'STORE_BUSY',
      `Cannot accept more changes as ${this.#pending.length} wait to be written to ${this.#deps.path}`,
    );
  }

  append(change: StoredChange): void {
    this.#appended = change.version;
    if (this.#ended !== undefined) return;
    const row = rowOf(change, this.#deps.storeTime());
    this.#pending.push({ row, safety: this.#deps.safetyOf(change.resource), resource: change.resource });
    this.#pendingBytes += row.value.length;
    if (this.#hasOverflowed()) this.fail(this.#overflowError());
    else this.#schedule();
  }

  /**
   * Resolves when the version is committed. Rejects immediately for a version whose commit has
   * failed, although a retry may still commit it.
   */
  whenCommitted(version: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    // A version above the last change counts as committed when all changes are committed.
    const target = Math.min(version, this.#appended);
    if (target <= this.#committed) return Promise.resolve();
    const problem = this.#ended ?? this.#failure;
    if (problem !== undefined) return Promise.reject(problem);
    return this.#waiters.wait(target, signal);
  }

  onCommitted(listener: (version: number) => void): Disposable {
    return this.#events.on('committed', listener);
  }

  /** Stops writing and fails all waiters. */
  end(error: KubelingError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#retry?.cancel();
    this.#lifetime.abort(error);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#waiters.fail(error);
  }

  /** Ends the queue after a permanent error. */
  fail(error: KubelingError): void {
    if (this.#ended !== undefined) return;
    this.#deps.logger.error('Store has failed', error);
    this.end(error);
    this.#deps.onFailed(error);
  }

  /**
   * Starts the commit in a microtask, so that changes of one event loop iteration are committed
   * together.
   */
  #schedule(): void {
    if (this.#isScheduled || this.#inFlight.length > 0 || this.#retry !== undefined) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#inFlight.length === 0 && this.#retry === undefined && this.#ended === undefined)
        this.#commitNext();
    });
  }

  #commitNext(): void {
    if (this.#pending.length === 0) return;
    this.#inFlight = this.#takeBatch();
    this.#deps.thread.call(this.#requestFor(this.#inFlight), this.#lifetime.signal).then(
      (stats) => this.#succeeded(stats),
      (error) => this.#failed(error),
    );
  }

  #takeBatch(): readonly Pending[] {
    let bytes = 0;
    const beyond = this.#pending.findIndex(({ row }, at) => {
      bytes += row.value.length;
      return at > 0 && (at >= batchRows || bytes > batchBytes);
    });
    const batch = this.#pending.splice(0, beyond === -1 ? this.#pending.length : beyond);
    for (const { row } of batch) this.#pendingBytes -= row.value.length;
    return batch;
  }

  #requestFor(batch: readonly Pending[]): CommitRequest & { readonly do: 'commit' } {
    const unknown = new Map(
      batch
        .filter(({ resource }) => !this.#known.has(resourceName(resource)))
        .map(({ resource }) => [resourceName(resource), JSON.stringify(resource)]),
    );
    return {
      do: 'commit',
      rows: batch.map(({ row }) => row),
      safety: batch.some(({ safety }) => safety === 'disk') ? 'disk' : 'system',
      facts: [...unknown],
    };
  }

  #succeeded(stats: FileStats): void {
    if (this.#ended !== undefined) return;
    const batch = this.#inFlight;
    this.#inFlight = [];
    this.#commits++;
    for (const { resource } of batch) this.#known.add(resourceName(resource));
    this.#recovered();
    this.#committed = batch.at(-1)?.row.rev ?? this.#committed;
    this.#waiters.reached(this.#committed);
    this.#events.emit('committed', this.#committed);
    this.#deps.onStats(stats);
    this.#schedule();
  }

  #recovered(): void {
    this.#failuresInRow = 0;
    if (this.#failure === undefined) return;
    this.#failure = undefined;
    this.#deps.logger.info('Store is writable again', { path: this.#deps.path });
  }

  #failed(error: unknown): void {
    if (this.#ended !== undefined) return;
    this.#failures++;
    this.#failuresInRow++;
    const batch = this.#inFlight;
    this.#inFlight = [];
    this.#pending = [...batch, ...this.#pending];
    for (const { row } of batch) this.#pendingBytes += row.value.length;
    const failure = this.#errorOf(error);
    if (!isRetriable(error)) {
      this.fail(failure);
      return;
    }
    if (this.#failure === undefined) this.#deps.logger.error('Failed to write to the store', failure);
    this.#failure = failure;
    this.#waiters.fail(failure);
    this.#retryLater();
  }

  #retryLater(): void {
    const delayMs = Math.min(longestRetryMs, firstRetryMs * 2 ** (this.#failuresInRow - 1));
    this.#retry = this.#deps.clock.timer(delayMs, () => {
      this.#retry = undefined;
      this.#commitNext();
    });
  }

  #errorOf(error: unknown): KubelingError {
    if (!(error instanceof StoreCallError)) {
      return error instanceof KubelingError
        ? error
        : new KubelingError('BUG', 'Cannot write to the store', { cause: error });
    }
    const { kind, message } = error.failure;
    const why = kind === 'full' ? 'no room is left on its disk' : `SQLite answers: ${message}`;
    const code = kind === 'corrupt' ? 'STORE_CORRUPT' : 'STORE_WRITE';
    return new KubelingError(code, `Cannot write to the store ${this.#deps.path} as ${why}`, {
      details: { changes: this.#pending.length },
    });
  }

  #hasOverflowed(): boolean {
    const { rows, bytes } = this.#deps.limits;
    return this.#pending.length > overflow * rows || this.#pendingBytes > overflow * bytes;
  }

  #overflowError(): KubelingError {
    const message = `Cannot go on as ${this.#pending.length} changes wait to be written to ${this.#deps.path}`;
    return new KubelingError('STORE_ENDED', message);
  }
}

/** Whether an error is permanent: a corrupt file and an exited thread do not recover. */
function isRetriable(error: unknown): boolean {
  return error instanceof StoreCallError && error.failure.kind !== 'corrupt';
}

interface Waiter {
  readonly version: number;
  readonly settle: (error: KubelingError | undefined) => void;
}

/** The callers that wait until a version is committed. An aborted waiter is removed immediately. */
class VersionWaiters {
  readonly #waiters = new Set<Waiter>();

  wait(version: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        version,
        settle: (error) => {
          this.#waiters.delete(waiter);
          link[Symbol.dispose]();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      this.#waiters.add(waiter);
      const link = onAbort(signal, (reason) => {
        this.#waiters.delete(waiter);
        reject(reason);
      });
    });
  }

  reached(version: number): void {
    for (const waiter of this.#waiters) if (waiter.version <= version) waiter.settle(undefined);
  }

  /** Rejects the promises of all waiters. */
  fail(error: KubelingError): void {
    for (const waiter of this.#waiters) waiter.settle(error);
  }
}
