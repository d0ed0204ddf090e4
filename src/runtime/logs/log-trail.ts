import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Clock } from '../../lib/index.ts';
import type { LogFiles, LogHandle } from './log-files.ts';

/** One file of a log, open. */
export interface OpenLogFile {
  readonly handle: LogHandle;
  readonly format: 'plain' | 'gzip';
}

/** One that queues up to be read. */
interface QueuedFile {
  readonly file: OpenLogFile;
  /** When it was seen that it took the place of the one before it. */
  readonly sinceMs: number;
}

export interface LogFileSequenceDeps {
  readonly files: LogFiles;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/**
 * A file that took the place of another while its log is followed is opened at once. Of so many we keep hold, and of more
 * while they are small: what is open takes room on the disk after it was removed.
 */
const freelyQueued = 16;
const maxQueued = 128;
const maxQueuedBytes = 256 << 20;
const compressed = '.gz';

/**
 * The files of one instance's log in the order they were written: those that were rotated away, `N.log.<time>` plain
 * or as `.gz`, and last the one that is written now, `N.log`. Between a rotation and the moment the runtime opens the
 * log anew there is no last one. Who follows looks again and again: files that came since are opened and queue up, so
 * that a slow reader loses none of them to the next rotation.
 */
export class LogFileSequence implements AsyncDisposable {
  readonly #files: LogFiles;
  readonly #path: string;
  /** Names without `.gz` of the rotated ones, in order; those still to be read. */
  #older: readonly string[] = [];
  /** By their place among those: the ones that were opened before their turn. */
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

  /** How many rotated files there were at the beginning. */
  get olderCount(): number {
    return this.#older.length;
  }

  /** One of those, 0 for the oldest; undefined when it is gone by now, or is the one that was written last. */
  async openOlder(index: number): Promise<OpenLogFile | undefined> {
    const stem = this.#older[index];
    const file = stem === undefined ? undefined : await this.#openRotated(stem);
    if (file?.handle.identity !== this.#newest) return file;
    if (file !== undefined) await this.release(file);
    return undefined;
  }

  /** The same to read it, in this order; each once. */
  async takeOlder(index: number): Promise<OpenLogFile | undefined> {
    this.#olderTaken = index + 1;
    const kept = this.#openedOlder.get(index);
    this.#openedOlder.delete(index);
    return kept ?? (await this.openOlder(index));
  }

  /** Takes hold of all that is still to be read, before some of it goes. */
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

  /** The file that is to be read after the older ones, and then whatever took its place; undefined for none yet. */
  next(): OpenLogFile | undefined {
    return this.#queue.shift()?.file;
  }

  /** The one `next` would answer. */
  get upcoming(): OpenLogFile | undefined {
    return this.#queue[0]?.file;
  }

  /** For how long it has been known that there is another one to read. */
  get upcomingForMs(): number {
    const [first] = this.#queue;
    return first === undefined ? 0 : this.#clock.monotonicMs() - first.sinceMs;
  }

  /** Looks whether another file has taken the place of the last one. One look at a time: who comes meanwhile has it repeated. */
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
   * First the one that is written: should it be rotated meanwhile, it is known by its identity. Just rotated and not
   * opened anew yet, it still is the one that is written.
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

  /** Those that were rotated before the file; all when it was not rotated itself since it was opened. */
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
        // It was rotated meanwhile: whatever came after it is for another look.
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
   * What was rotated after the newest file we know. That one is among them under a name of its own now: found by its
   * identity, or, compressed already, as the first of the names that are new; unless it is gone for being too old.
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

  /** Compressing puts the compressed one beside the plain one before that goes, so one of them is always there. */
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

/** `N.log.YYYYMMDD-HHMMSS`, plain or compressed; what is still being compressed has another ending. */
function rotatedStem(base: string, name: string): string | undefined {
  if (!name.startsWith(`${base}.`)) return undefined;
  const stem = name.endsWith(compressed) ? name.slice(0, -compressed.length) : name;
  return /^\d{8}-\d{6}$/.test(stem.slice(base.length + 1)) ? stem : undefined;
}

const chunkBytes = 256 << 10;

export interface ChunkRange {
  readonly from: number;
  /** Where to end though more may follow; as far as there is something unless given. */
  readonly to?: number | undefined;
}

/** The log in pieces, from a place in it; each is good until the next is asked for. Reads no faster than it is asked. */
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

/** What is damaged ends where the damage begins: the rest of the log is worth more than an error. */
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
