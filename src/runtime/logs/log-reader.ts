import { posix } from 'node:path';
import { type Clock, HintLatch } from '../../lib/index.ts';
import { LogDecoder, type LogView } from './log-decoder.ts';
import type { LogFiles } from './log-files.ts';
import { TailSearch } from './log-tail.ts';
import type { LogFileSequence, OpenLogFile } from './log-trail.ts';
import { type ChunkRange, chunksOf } from './log-trail.ts';

export interface LogReadRequest {
  readonly path: string;
  readonly view: LogView;
  /** The number of lines from the end; all lines if undefined. */
  readonly tailLines?: number | undefined;
  /**
   * Follows the log while `isRunning` returns true; if undefined, reading stops at the end of the
   * log.
   */
  readonly follow?: { isRunning(signal: AbortSignal): Promise<boolean> } | undefined;
}

export interface LogReaderDeps {
  readonly files: LogFiles;
  readonly clock: Clock;
}

/**
 * The interval at which the reader checks whether the container still runs, and looks for new log
 * files if no change was reported.
 */
const pollMs = 1_000;
/**
 * The runtime may write output shortly after it has reported the exit or opened the next file: a
 * file counts as complete when it did not grow for this time.
 */
const settleMs = 100;
/**
 * The maximum wait for a file to stop growing, used after a partial line or on a busy machine;
 * otherwise the wait is shorter.
 */
const maxSettleMs = 2_000;

/**
 * The position where reading starts. `older` is the index of a rotated file, counted from the
 * oldest; if it equals the number of rotated files, reading starts in the current file. `offset` is
 * the offset in that file.
 */
interface Start {
  readonly older: number;
  readonly offset: number;
}

/** Reads one log once. Buffers one chunk, and reads the next when it was consumed. */
export class LogReader {
  readonly #deps: LogReaderDeps;
  readonly #request: LogReadRequest;
  readonly #sequence: LogFileSequence;
  readonly #decoder: LogDecoder;
  readonly #hints: HintLatch;
  #refreshDue = true;
  /** The last time at which a file grew although the next file had already replaced it. */
  #grewAtMs = Number.NEGATIVE_INFINITY;

  /** Creates a reader; the caller closes the file sequence. */
  constructor(deps: LogReaderDeps, reading: LogReadRequest, trail: LogFileSequence) {
    this.#deps = deps;
    this.#request = reading;
    this.#sequence = trail;
    this.#decoder = new LogDecoder(reading.view);
    this.#hints = new HintLatch(deps.clock);
  }

  async *chunks(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { follow } = this.#request;
    const size = (await this.#sequence.upcoming?.handle.size()) ?? 0;
    const start = await this.#start(size);
    yield* this.#readOlder(start, signal);
    const offset = start.older < this.#sequence.olderCount ? 0 : start.offset;
    if (follow === undefined) yield* this.#readLast({ from: offset, to: size }, signal);
    else yield* this.#follow(follow, offset, signal);
  }

  async #start(size: number): Promise<Start> {
    const { tailLines } = this.#request;
    const { olderCount, upcoming } = this.#sequence;
    if (tailLines === undefined) return { older: 0, offset: 0 };
    if (tailLines === 0) return { older: olderCount, offset: size };
    const search = new TailSearch(tailLines);
    const offset = upcoming === undefined ? undefined : await search.search(upcoming, size);
    if (offset !== undefined) return { older: olderCount, offset };
    return await this.#startInOlder(search);
  }

  async #startInOlder(search: TailSearch): Promise<Start> {
    for (let older = this.#sequence.olderCount - 1; older >= 0; older--) {
      const file = await this.#sequence.openOlder(older);
      if (file === undefined) continue;
      const offset = await search.search(file, await file.handle.size());
      await this.#sequence.release(file);
      if (offset !== undefined) return { older, offset };
    }
    return { older: 0, offset: 0 };
  }

  async *#readOlder({ older, offset }: Start, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (let index = older; index < this.#sequence.olderCount && !this.#decoder.isDone; index++) {
      const file = await this.#sequence.takeOlder(index);
      if (file === undefined) continue;
      yield* this.#read(file, { from: index === older ? offset : 0 }, signal);
      yield* this.#endFile();
      await this.#sequence.release(file);
    }
  }

  async *#readLast(range: ChunkRange, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const file = this.#sequence.next();
    if (file === undefined || this.#decoder.isDone) return;
    yield* this.#read(file, range, signal);
    yield* this.#endFile();
  }

  /** Reads the file; returns the offset where reading stopped. */
  async *#read(
    file: OpenLogFile,
    range: ChunkRange,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, number> {
    let at = range.from;
    for await (const chunk of chunksOf(file, range)) {
      signal.throwIfAborted();
      at += chunk.length;
      const out = this.#decoder.decode(chunk);
      if (out.length > 0) yield out;
      if (this.#decoder.isDone) break;
    }
    return at;
  }

  *#endFile(): Generator<Uint8Array> {
    const out = this.#decoder.endFile();
    if (out.length > 0) yield out;
  }

  async *#follow(
    { isRunning }: NonNullable<LogReadRequest['follow']>,
    offset: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const { clock } = this.#deps;
    using _watch = this.#watch();
    let file = this.#sequence.next();
    let at = offset;
    let pollAt = clock.monotonicMs();
    let state: 'running' | 'ended' = 'running';
    for (;;) {
      this.#hints.clear();
      if (file !== undefined) at = yield* this.#read(file, { from: at }, signal);
      if (this.#decoder.isDone) return;
      if (file !== undefined && (await sizeOf(file, at)) < at) {
        // The file was truncated in place, so it is read again from its start.
        yield* this.#endFile();
        at = 0;
        continue;
      }
      if (await this.#hasNext()) {
        if (file !== undefined && (await this.#grows(file, at, signal))) continue;
        yield* this.#endFile();
        if (file !== undefined) await this.#sequence.release(file);
        file = this.#sequence.next();
        at = 0;
        continue;
      }
      if (state === 'ended') return yield* this.#endFile();
      if (clock.monotonicMs() >= pollAt) {
        pollAt = clock.monotonicMs() + pollMs;
        this.#refreshDue = true;
        if (await isRunning(signal)) continue;
        state = 'ended';
        await clock.sleep(settleMs, signal);
        continue;
      }
      await this.#hints.wait(pollAt - clock.monotonicMs(), signal);
    }
  }

  /** Whether a newer file has replaced the file that is being read. */
  async #hasNext(): Promise<boolean> {
    if (this.#refreshDue) {
      this.#refreshDue = false;
      await this.#sequence.refresh();
    }
    return this.#sequence.upcoming !== undefined;
  }

  /**
   * Waits for a file to grow that was already replaced; returns whether it has grown. The longer
   * ago the file was replaced, the shorter is the wait. After a partial line or on a busy machine,
   * the wait is longer.
   */
  async #grows(file: OpenLogFile, at: number, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    const restingMs = Math.min(this.#sequence.upcomingForMs, beganMs - this.#grewAtMs);
    let dueMs = settleMs - restingMs;
    while (dueMs > 0 || (this.#decoder.isInLine && this.#mayWait(file, beganMs))) {
      const startMs = clock.monotonicMs();
      await clock.sleep(Math.max(dueMs, settleMs / 4), signal);
      const isSlow = clock.monotonicMs() - startMs > 2 * settleMs;
      dueMs = isSlow && this.#mayWait(file, beganMs) ? settleMs : 0;
      if ((await sizeOf(file, at)) > at) break;
    }
    const isGrown = (await sizeOf(file, at)) > at;
    if (isGrown) this.#grewAtMs = clock.monotonicMs();
    return isGrown;
  }

  /** Whether to continue to wait until the file grows. A compressed file does not grow. */
  #mayWait({ format }: OpenLogFile, sinceMs: number): boolean {
    return format === 'plain' && this.#deps.clock.monotonicMs() - sinceMs < maxSettleMs;
  }

  /**
   * Refreshes the file sequence on hints and periodically, also while the consumer is slow, so that
   * each file is opened before the rotation removes it.
   */
  #watch(): Disposable {
    const { files, clock } = this.#deps;
    // The error is ignored here: the reader's next refresh of the file sequence fails with the same
    // error and reports it.
    const look = () => void this.#sequence.refresh().catch(() => {});
    const watch = files.watch(posix.dirname(this.#request.path), (what) => {
      if (what === 'renamed') {
        this.#refreshDue = true;
        look();
      }
      this.#hints.raise();
    });
    const tick = () => {
      look();
      timer = clock.timer(pollMs, tick);
    };
    let timer = clock.timer(pollMs, tick);
    return {
      [Symbol.dispose]: () => {
        timer.cancel();
        watch[Symbol.dispose]();
      },
    };
  }
}

/**
 * Returns the size of the file. A compressed file does not change, so the number of uncompressed
 * bytes that were read is its size.
 */
async function sizeOf({ handle, format }: OpenLogFile, read: number): Promise<number> {
  return format === 'gzip' ? read : await handle.size();
}
