import { write, writeSync } from 'node:fs';
import { abortable } from '../abort.ts';
import type { Clock } from '../clock.ts';
import type { LogSink } from './logger.ts';

/** Where lines end up. `write` may take long; `writeSync` is for the last words of a process. */
export interface LogOutput {
  write(text: string): Promise<void>;
  writeSync(text: string): void;
}

export interface BufferedLogSinkOptions {
  readonly clock: Clock;
  readonly output: LogOutput;
  /** What may wait while the output is blocked, counted in characters; 1 Mi unless given. */
  readonly maxBuffered?: number;
  /** The line that tells of a gap, put where the lost lines would have been. */
  readonly gapLine?: (dropped: number) => string;
}

/** One write at a time of at most this many characters. */
const chunkSize = 64 * 1024;

/**
 * Writes lines in the background, in order. When whoever reads the output stops reading, lines wait up to a bound;
 * beyond it they are dropped and counted, and the node goes on.
 */
export class BufferedLogSink implements LogSink {
  readonly #clock: Clock;
  readonly #output: LogOutput;
  readonly #maxBuffered: number;
  readonly #gapLine: ((dropped: number) => string) | undefined;
  #lines: string[] = [];
  #buffered = 0;
  #dropped = 0;
  /** Lines lost since the last one that was kept. */
  #gap = 0;
  #writing: Promise<void> | undefined;
  #lastFlushMs: number;

  constructor(options: BufferedLogSinkOptions) {
    this.#clock = options.clock;
    this.#output = options.output;
    this.#maxBuffered = options.maxBuffered ?? 2 ** 20;
    this.#gapLine = options.gapLine;
    this.#lastFlushMs = options.clock.monotonicMs();
  }

  /** How many lines were lost, because the output was blocked or failed. */
  get dropped(): number {
    return this.#dropped;
  }

  /** When nothing was left to write, by the monotonic clock: now, unless lines wait for the output. */
  get lastFlushMs(): number {
    return this.#writing === undefined ? this.#clock.monotonicMs() : this.#lastFlushMs;
  }

  write(line: string): void {
    if (this.#buffered + line.length + 1 > this.#maxBuffered) {
      this.#dropped++;
      this.#gap++;
      return;
    }
    this.#closeGap();
    this.#buffer(line);
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when all lines written so far are out. */
  async flush(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#writing !== undefined) await abortable(this.#writing, signal);
  }

  /** Writes what waits before it returns; for the end of the process. May block, and must not fail. */
  flushSync(): void {
    this.#closeGap();
    const text = this.#take(Number.POSITIVE_INFINITY).join('');
    try {
      if (text !== '') this.#output.writeSync(text);
    } catch {
      // The process ends; there is nowhere left to say that its last words were lost.
    }
  }

  #closeGap(): void {
    if (this.#gap > 0 && this.#gapLine !== undefined) this.#buffer(this.#gapLine(this.#gap));
    this.#gap = 0;
  }

  #buffer(line: string): void {
    this.#lines.push(`${line}\n`);
    this.#buffered += line.length + 1;
  }

  async #writeAll(): Promise<void> {
    this.#lastFlushMs = this.#clock.monotonicMs();
    // Lines of one turn go out together.
    await Promise.resolve();
    while (this.#lines.length > 0) await this.#writeChunk();
    this.#writing = undefined;
  }

  async #writeChunk(): Promise<void> {
    const lines = this.#take(chunkSize);
    try {
      await this.#output.write(lines.join(''));
      this.#lastFlushMs = this.#clock.monotonicMs();
    } catch {
      this.#dropped += lines.length;
    }
  }

  #take(size: number): string[] {
    let count = 0;
    for (let taken = 0; count < this.#lines.length && taken < size; count++) {
      taken += this.#lines[count]?.length ?? 0;
    }
    const lines = this.#lines.splice(0, count);
    for (const line of lines) this.#buffered -= line.length;
    return lines;
  }
}

/** How long to leave a full non-blocking pipe alone before trying again. */
const retryMs = 20;

/**
 * A file descriptor such as that of stderr. Node's own stream for it blocks the whole process when a pipe is full,
 * so the writes are made beside it, by a thread of the pool.
 */
export function descriptorOutput(descriptor: number, clock: Clock): LogOutput {
  const open = new AbortController().signal;
  return {
    async write(text) {
      for (let rest = Buffer.from(text); rest.length > 0; ) {
        const written = await writeSome(descriptor, rest);
        rest = rest.subarray(written);
        if (written === 0) await clock.sleep(retryMs, open);
      }
    },
    writeSync(text) {
      for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(descriptor, rest));
    },
  };
}

function writeSome(descriptor: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, (error, written) => {
      if (error === null) resolve(written);
      else if (error.code === 'EAGAIN') resolve(0);
      else reject(error);
    });
  });
}
