import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../../lib/index.ts';
import type { LogFiles, LogHandle } from './log-files.ts';

/** An opened file of a log. */
export interface OpenLogFile {
  readonly handle: LogHandle;
  readonly format: 'plain' | 'gzip';
}

/** A log file that waits to be read. */
interface QueuedFile {
  readonly file: OpenLogFile;
  /** The time at which this file was found to have replaced the previous one. */
  readonly sinceMs: number;
}

export interface LogFileSequenceDeps {
  readonly files: LogFiles;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * The limits of files opened in advance while a log is followed: `freelyQueued` of any size, and up
 * to `maxQueued` small ones, because an open file occupies disk space after its removal.
 */
const freelyQueued = 16;
const maxQueued = 128;
const maxQueuedBytes = 256 << 20;
const compressed = '.gz';

/**
 * The files of one instance's log in the order of writing: rotated files, `N.log.<time>` or
 * `N.log.<time>.gz`, then the current file `N.log`. The current file is missing between a rotation
 * and the reopening by the runtime. A follower refreshes regularly: new files are opened and
 * queued, so that a slow reader misses none.
 */
export class LogFileSequence implements AsyncDisposable {
  readonly #files: LogFiles;
  readonly #path: string;
  /** The names of the unread rotated files in order, without `.gz`. */
  #older: readonly string[] = [];
  /** The rotated files opened in advance, by index. */
  readonly #openedOlder = new Map<number, OpenLogFile>();
  #olderTaken = 0;
  #known: ReadonlySet<string> = new Set();
  #newest: string | undefined;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #queue: QueuedFile[] = [];
  readonly #openHandles = new Set<LogHandle>();
  #refreshing: Promise<void> | undefined;
  #isRefreshDue = false;
  #state: 'open' | 'closed' = 'open';

  private constructor({ files, clock }: LogFileSequenceDeps, path: string) {
    this.#files = files;
    this.#clock = clock;
    this.#path = path;
  }

  static async open(deps: LogFileSequenceDeps, path: string): Promise<LogFileSequence> {
    const trail = new LogFileSequence(deps, path);
    try {
      await trail.#openFirst();
      return trail;
    } catch (error) {
      await trail[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The number of rotated files when reading started. */
  get olderCount(): number {
    return this.#older.length;
  }

  /**
   * Opens a rotated file by its index, 0 for the oldest; undefined when the file is missing or is
   * the newest file.
   */
  async openOlder(index: number): Promise<OpenLogFile | undefined> {
    const stem = this.#older[index];
    const file = stem === undefined ? undefined : await this.#openRotated(stem);
    if (file?.handle.identity !== this.#newest) return file;
    if (file !== undefined) await this.release(file);
    return undefined;
  }

  /** Opens a rotated file for reading; call once per file, from the oldest to the newest. */
  async takeOlder(index: number): Promise<OpenLogFile | undefined> {
    this.#olderTaken = index + 1;
    const kept = this.#openedOlder.get(index);
    this.#openedOlder.delete(index);
    return kept ?? (await this.openOlder(index));
  }

  /** Opens all unread files before the rotation removes some of them. */
  async openRemaining(): Promise<void> {
    for (let index = this.#olderTaken; index < this.#older.length; index++) {
      if (this.#openedOlder.has(index)) continue;
      const file = await this.openOlder(index);
      if (file === undefined) continue;
      if (index < this.#olderTaken || this.#isClosed()) await this.release(file);
      else this.#openedOlder.set(index, file);
    }
    await this.refresh();
  }

  /**
   * Returns the next file that was created after the rotated ones; undefined when there is none
   * yet.
   */
  next(): OpenLogFile | undefined {
    return this.#queue.shift()?.file;
  }

  /** Returns the file that `next` would return. */
  get upcoming(): OpenLogFile | undefined {
    return this.#queue[0]?.file;
  }

  /** The time in milliseconds since the file that `next` would return was found. */
  get upcomingForMs(): number {
    const [first] = this.#queue;
    return first === undefined ? 0 : this.#clock.monotonicMs() - first.sinceMs;
  }

  /**
   * Checks whether a new file has replaced the newest one. Checks are serialized; a call during a
   * check causes another check.
   */
  refresh(): Promise<void> {
    this.#isRefreshDue = true;
    this.#refreshing ??= this.#refreshWhileDue().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refreshWhileDue(): Promise<void> {
    while (this.#isRefreshDue) {
      this.#isRefreshDue = false;
      await this.#refreshOnce();
    }
  }

  async release({ handle }: OpenLogFile): Promise<void> {
    this.#openHandles.delete(handle);
    await handle[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = 'closed';
    await this.#refreshing?.catch(() => {});
    const held = [...this.#openHandles];
    this.#openHandles.clear();
    await Promise.all(held.map((handle) => handle[Symbol.asyncDispose]()));
  }

  /**
   * Opens the current file first, so that it is recognized by its identity if it is rotated before
   * the names are listed. A file that was rotated and not reopened yet still counts as the current
   * one.
   */
  async #openFirst(): Promise<void> {
    const current = await this.#open(this.#path, 'plain');
    const stems = await this.#stems();
    const last = stems.at(-1);
    const before = await this.#writtenBefore(stems, current);
    this.#known = new Set(before);
    const written = current ?? (last === undefined ? undefined : await this.#openRotated(last));
    this.#older = current === undefined ? stems.slice(0, -1) : before;
    if (written !== undefined) this.#enqueue(written);
  }

  /**
   * Returns the names of the files that were rotated before the given file; the names of all
   * rotated files when the given file was not rotated after it was opened.
   */
  async #writtenBefore(stems: readonly string[], file: OpenLogFile | undefined): Promise<readonly string[]> {
    for (const [index, stem] of stems.entries())
      if (await this.#isAt(stem, file?.handle.identity)) return stems.slice(0, index);
    return stems;
  }

  async #refreshOnce(): Promise<void> {
    if (this.#state === 'closed' || (await this.#holdsEnough())) return;
    const identity = await this.#files.identityAt(this.#path);
    if (identity === undefined || identity === this.#newest) return;
    const current = await this.#open(this.#path, 'plain');
    if (current === undefined) return;
    const stems = await this.#stems();
    if (this.#isClosed()) return await this.release(current);
    for (const stem of await this.#since(stems)) {
      const between = await this.#openRotated(stem);
      if (between?.handle.identity === current.handle.identity) {
        await this.release(between);
        // The current file was rotated after the names were listed; files that follow it are left
        // to the next refresh.
        this.#known = new Set(stems.slice(0, stems.indexOf(stem) + 1));
        this.#isRefreshDue = true;
        return this.#enqueue(current);
      }
      if (between !== undefined) this.#enqueue(between);
    }
    this.#known = new Set(stems);
    this.#enqueue(current);
  }

  async #holdsEnough(): Promise<boolean> {
    if (this.#queue.length < freelyQueued) return false;
    if (this.#queue.length >= maxQueued) return true;
    const sizes = await Promise.all(this.#queue.map(({ file }) => file.handle.size()));
    return sizes.reduce((sum, bytes) => sum + bytes, 0) >= maxQueuedBytes;
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  /**
   * Returns the files rotated after the newest file that is known so far. That file may be among
   * the rotated files under a new name: it is recognized by its identity or, when compressed, as
   * the first new name.
   */
  async #since(stems: readonly string[]): Promise<readonly string[]> {
    const fresh = stems.filter((stem) => !this.#known.has(stem));
    if (this.#newest === undefined) return fresh;
    for (const [index, stem] of fresh.entries()) {
      if (await this.#isAt(stem, this.#newest)) return fresh.slice(index + 1);
    }
    const [first] = fresh;
    const isCompressed = first !== undefined && (await this.#identityOf(first)) === undefined;
    return isCompressed ? fresh.slice(1) : fresh;
  }

  async #identityOf(stem: string): Promise<string | undefined> {
    return await this.#files.identityAt(this.#beside(stem));
  }

  async #isAt(stem: string, identity: string | undefined): Promise<boolean> {
    return identity !== undefined && (await this.#identityOf(stem)) === identity;
  }

  #enqueue(file: OpenLogFile): void {
    this.#newest = file.handle.identity;
    this.#queue.push({ file, sinceMs: this.#clock.monotonicMs() });
  }

  /**
   * The compressed file is created before the plain file is removed, so one of the two always
   * exists.
   */
  async #openRotated(stem: string): Promise<OpenLogFile | undefined> {
    const path = this.#beside(stem);
    return (await this.#open(path, 'plain')) ?? (await this.#open(`${path}${compressed}`, 'gzip'));
  }

  async #open(path: string, format: OpenLogFile['format']): Promise<OpenLogFile | undefined> {
    const handle = await this.#files.open(path);
    if (handle === undefined) return undefined;
    this.#openHandles.add(handle);
    return { handle, format };
  }

  async #stems(): Promise<readonly string[]> {
    const base = posix.basename(this.#path);
    const names = await this.#files.names(posix.dirname(this.#path));
    const rotated = names.flatMap((name) => rotatedStem(base, name) ?? []);
    return [...new Set(rotated)].sort();
  }

  #beside(stem: string): string {
    return posix.join(posix.dirname(this.#path), stem);
  }
}

/**
 * Matches `N.log.YYYYMMDD-HHMMSS` with or without `.gz`; a file being compressed has another
 * suffix.
 */
function rotatedStem(base: string, name: string): string | undefined {
  if (!name.startsWith(`${base}.`)) return undefined;
  const stem = name.endsWith(compressed) ? name.slice(0, -compressed.length) : name;
  return /^\d{8}-\d{6}$/.test(stem.slice(base.length + 1)) ? stem : undefined;
}

const chunkBytes = 256 << 10;

export interface ChunkRange {
  readonly from: number;
  /** The offset where reading stops; the end of the file if undefined. */
  readonly to?: number | undefined;
}

/** Reads a file in chunks. Each chunk is valid until the next one is requested. */
export async function* chunksOf(
  { handle, format }: OpenLogFile,
  range: ChunkRange,
): AsyncGenerator<Uint8Array> {
  if (format === 'gzip') yield* unpacked({ handle, format: 'plain' }, range);
  else yield* plain({ handle, format }, range);
}

async function* plain({ handle }: OpenLogFile, { from, to = Number.POSITIVE_INFINITY }: ChunkRange) {
  const buffer = new Uint8Array(chunkBytes);
  for (let at = from; at < to; ) {
    const length = await handle.read(buffer.subarray(0, Math.min(chunkBytes, to - at)), at);
    if (length === 0) return;
    yield buffer.subarray(0, length);
    at += length;
  }
}

/** Reading stops at the damage of a damaged file, so that the following files are still shown. */
async function* unpacked(file: OpenLogFile, { from }: ChunkRange) {
  const packed = Readable.from(copies(file));
  const gunzip = createGunzip();
  packed.on('error', (error) => gunzip.destroy(error));
  let skip = from;
  try {
    for await (const chunk of packed.pipe(gunzip)) {
      const bytes: Uint8Array = chunk;
      if (skip < bytes.length) yield bytes.subarray(skip);
      skip = Math.max(0, skip - bytes.length);
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  } finally {
    packed.destroy();
    gunzip.destroy();
  }
}

async function* copies(file: OpenLogFile) {
  for await (const chunk of plain(file, { from: 0 })) yield Uint8Array.from(chunk);
}

function isDamage(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('Z_');
}
