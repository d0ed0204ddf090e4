import { write, writeSync } from 'node:fs';
import { abortable } from '../abort.ts';
import type { Clock } from '../clock.ts';
import type { LogSink } from './logger.ts';

/**
 * The output of log lines. `write` may be slow; `writeSync` writes the last lines before the
 * process exits.
 */
export interface LogOutput {
  write(text: string): Promise<void>;
  writeSync(text: string): void;
}

export interface BufferedLogSinkOptions {
  readonly clock: Clock;
  readonly output: LogOutput;
  /** The maximum number of buffered characters while the output is blocked; 1 Mi by default. */
  readonly maxBuffered?: number;
  /** Formats the line that reports lost lines; it is written where they are missing. */
  readonly gapLine?: (dropped: number) => string;
}

/** The maximum number of characters per write; one write runs at a time. */
const chunkSize = 64 * 1024;

/**
 * Writes log lines in the background, in order. While the output is blocked, lines are buffered up
 * to a limit; lines beyond it are dropped and counted.
 */
export class BufferedLogSink implements LogSink {
  readonly #clock: Clock;
  readonly #output: LogOutput;
  readonly #maxBuffered: number;
  readonly #gapLine: ((dropped: number) => string) | undefined;
  #lines: string[] = [];
  #buffered = 0;
  #dropped = 0;
  /** The number of lines that were lost since the last buffered line. */
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

  /** The number of lines that were lost because the output was blocked or failed. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * When the buffer was last empty, in monotonic time; the current time if no lines wait for the
   * output.
   */
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

  /** Resolves when all lines logged before the call are written. */
  async flush(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#writing !== undefined) await abortable(this.#writing, signal);
  }

  /** Writes all buffered lines synchronously when the process exits. May block; must not throw. */
  flushSync(): void {
    this.#closeGap();
    const text = this.#dequeue(Number.POSITIVE_INFINITY).join('');
    try {
      if (text !== '') this.#output.writeSync(text);
    } catch {
      // The error is ignored: a loss of the last lines before the exit cannot be reported.
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
    // Lines of one event loop iteration are written together.
    await Promise.resolve();
    while (this.#lines.length > 0) await this.#writeChunk();
    this.#writing = undefined;
  }

  async #writeChunk(): Promise<void> {
    const lines = this.#dequeue(chunkSize);
    try {
      await this.#output.write(lines.join(''));
      this.#lastFlushMs = this.#clock.monotonicMs();
    } catch {
      this.#dropped += lines.length;
    }
  }

  #dequeue(size: number): string[] {
    let count = 0;
    for (let dequeuedSize = 0; count < this.#lines.length && dequeuedSize < size; count++) {
      dequeuedSize += this.#lines[count]?.length ?? 0;
    }
    const lines = this.#lines.splice(0, count);
    for (const line of lines) this.#buffered -= line.length;
    return lines;
  }
}

/** The delay before a write to a full non-blocking pipe is retried. */
const retryMs = 20;

/**
 * An output to a file descriptor such as that of stderr. Writes use the thread pool, because the
 * stream of Node.js blocks the process when a pipe is full.
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
