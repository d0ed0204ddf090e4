import { getHeapStatistics } from 'node:v8';
import type { ApiResource } from '../../api/index.ts';
import {
  type Clock,
  describeError,
  KubelingError,
  type Logger,
  ProcessTable,
  type Random,
  systemRandom,
} from '../../lib/index.ts';
import type { QueueLimits } from './commit-queue.ts';
import { FileStore, type OpenedStore } from './file-store.ts';
import type { LogLimits } from './maintenance.ts';
import { type RestoredStore, restore } from './restore.ts';
import { acquireLock, copyForRecovery, prepareDirectory, prepareFile, setAside } from './store-files.ts';
import { StoreCallError, StoreThread } from './store-thread.ts';
import type { Opened, SyncLevel } from './worker/messages.ts';

export interface StoreOptions {
  /**
   * The path of the store file. Its directory is used only by the store and is created with mode
   * 0700.
   */
  readonly path: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random?: Random;
  readonly processes?: ProcessTable;
  /**
   * Whether an existing file is opened (default) or set aside, which renames it and creates a new
   * one.
   */
  readonly existingStore?: 'kept' | 'set-aside' | undefined;
  /** How long to wait for the lock of another process; 0 by default. */
  readonly lockWaitMs?: number;
  readonly log?: Partial<LogLimits>;
  readonly queue?: Partial<QueueLimits>;
  /**
   * The maximum size of all objects together, above which the store is not opened; by default
   * derived from the limit of the JavaScript heap.
   */
  readonly maxObjectBytes?: number | undefined;
  /**
   * The sync level of changes per resource. By default events and leases need not survive a power
   * failure.
   */
  readonly safetyOf?: (resource: ApiResource) => SyncLevel;
  /** Called once, when the store has failed permanently. */
  readonly onFailed?: (error: KubelingError) => void;
}

const megabyte = 1024 * 1024;
/**
 * The share of the JavaScript heap that objects may use; the rest is needed to read them, and for
 * the kubelet in the same process.
 */
const loadableHeapShare = 0.6;
const defaultLog: LogLimits = { keepMs: 5 * 60_000, keepRows: 50_000, keepBytes: 64 * megabyte };
const defaultQueue: QueueLimits = { rows: 5_000, bytes: 32 * megabyte };

/**
 * Opens or creates the store. Rejects with LOCK_HELD if another process has it open, with
 * STORE_CORRUPT if it is damaged and with STORE_NEWER if a later version of kubeling wrote it; the
 * last two errors contain the path of a copy of the file.
 */
export async function openStore(options: StoreOptions, signal: AbortSignal): Promise<OpenedStore> {
  await prepareDirectory(options.path);
  const unlock = await acquireLock(`${options.path}.lock`, lockDeps(options), signal);
  try {
    const aside = options.existingStore === 'set-aside' ? await setAsideExisting(options) : undefined;
    await prepareFile(options.path);
    return await openLocked({ ...options, aside }, unlock, signal);
  } catch (error) {
    await unlock();
    throw error;
  }
}

function lockDeps({ clock, random, processes, lockWaitMs }: StoreOptions) {
  return {
    clock,
    random: random ?? systemRandom(),
    processes: processes ?? new ProcessTable(),
    waitMs: lockWaitMs ?? 0,
  };
}

interface OpenOptions extends StoreOptions {
  readonly aside: string | undefined;
}

async function openLocked(
  options: OpenOptions,
  unlock: () => Promise<void>,
  signal: AbortSignal,
): Promise<OpenedStore> {
  try {
    return await openFile(options, unlock, signal);
  } catch (error) {
    throw isUnusable(error) ? await withRecoveryCopy(options.path, error) : error;
  }
}

async function openFile(
  options: OpenOptions,
  unlock: () => Promise<void>,
  signal: AbortSignal,
): Promise<OpenedStore> {
  const ends: { notify: (error: KubelingError) => void } = { notify: () => {} };
  const thread = new StoreThread((error) => ends.notify(error));
  try {
    const { opened, restored } = await read(thread, options, signal);
    const store = new FileStore({ ...withDefaults(options), thread, unlock, opened, restored });
    ends.notify = (error) => store.fail(error);
    return store;
  } catch (error) {
    await thread.terminate();
    throw error;
  }
}

function withDefaults(options: OpenOptions) {
  return {
    path: options.path,
    aside: options.aside,
    clock: options.clock,
    logger: options.logger,
    log: { ...defaultLog, ...options.log },
    queue: { ...defaultQueue, ...options.queue },
    safetyOf: options.safetyOf ?? defaultSyncLevel,
    onFailed: options.onFailed ?? (() => {}),
  };
}

/** Events and leases are written frequently and may be lost in a power failure. */
function defaultSyncLevel({ group, plural }: ApiResource): SyncLevel {
  if (plural === 'events') return 'system';
  return group === 'coordination.k8s.io' && plural === 'leases' ? 'system' : 'disk';
}

interface Read {
  readonly opened: Opened;
  readonly restored: RestoredStore;
}

async function read(
  thread: StoreThread,
  { path, maxObjectBytes }: Pick<StoreOptions, 'path' | 'maxObjectBytes'>,
  signal: AbortSignal,
): Promise<Read> {
  try {
    const opened = await thread.call({ do: 'open', path }, signal);
    checkFitsMemory(path, opened.objectBytes, maxObjectBytes);
    return { opened, restored: await restore(thread, opened, signal) };
  } catch (error) {
    throw openError(path, error);
  }
}

/**
 * Rejects a store that is too large for the memory: a process that runs out of memory is killed
 * without a message, and again at each restart.
 */
function checkFitsMemory(path: string, bytes: number, given: number | undefined): void {
  const max = given ?? getHeapStatistics().heap_size_limit * loadableHeapShare;
  if (bytes <= max) return;
  const mebibytes = (size: number) => Math.ceil(size / megabyte);
  const heap = mebibytes(bytes / loadableHeapShare);
  throw new KubelingError(
    'STORE_OPEN',
    `Cannot open the store ${path} as its objects take ${mebibytes(bytes)} MiB, and ${mebibytes(max)} MiB fit into the memory of this process; start once with NODE_OPTIONS=--max-old-space-size=${heap}, and delete objects that are not needed`,
  );
}

function openError(path: string, error: unknown): unknown {
  const cannot = `Cannot open the store ${path} as`;
  if (error instanceof KubelingError && error.code === 'STORE_CORRUPT') {
    return new KubelingError('STORE_CORRUPT', `${cannot} it is damaged: ${error.message}`);
  }
  if (!(error instanceof StoreCallError)) return error;
  const { kind, message } = error.failure;
  switch (kind) {
    case 'corrupt':
      return new KubelingError('STORE_CORRUPT', `${cannot} it is damaged: ${message}`);
    case 'newer':
      return new KubelingError('STORE_NEWER', `${cannot} a later version of kubeling wrote it: ${message}`);
    case 'busy':
      return new KubelingError('LOCK_HELD', `${cannot} another process has it open`);
    case 'full':
      return new KubelingError('STORE_OPEN', `${cannot} no room is left on its disk`);
    case 'failed':
      return new KubelingError('STORE_OPEN', `${cannot} SQLite answers: ${message}`);
  }
}

function isUnusable(error: unknown): error is KubelingError {
  return error instanceof KubelingError && (error.code === 'STORE_CORRUPT' || error.code === 'STORE_NEWER');
}

/**
 * Copies the unusable file and returns the error with the path of the copy. The file itself is not
 * changed.
 */
async function withRecoveryCopy(path: string, error: KubelingError): Promise<KubelingError> {
  const told = await copyForRecovery(path).then(
    (copy) => ({ text: `a copy of it is ${copy}`, details: { path, copy } }),
    (failure) => ({ text: `no copy could be made: ${describeError(failure)}`, details: { path } }),
  );
  const message = `${error.message}; it was left as it is, and ${told.text}`;
  return new KubelingError(error.code, message, { details: told.details });
}

async function setAsideExisting({ path, clock, logger }: StoreOptions): Promise<string | undefined> {
  const aside = await setAside(path, clock);
  if (aside !== undefined) logger.warn('Set the store aside and created a new one', { path, aside });
  return aside;
}
