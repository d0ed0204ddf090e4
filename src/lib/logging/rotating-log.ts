import { copyFile, type FileHandle, open, rename, stat, truncate } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { BufferedLogSink, descriptorOutput, type LogOutput } from './buffered-sink.ts';
import { formatRecord } from './format.ts';
import { createLogger, type Logger, type LoggerOptions } from './logger.ts';

export interface RotatingLogOptions {
  readonly clock: Clock;
  /** The size at which the log is rotated, 10 MiB by default; only one rotated log is kept. */
  readonly maxBytes?: number;
}

const logMode = 0o640;

/**
 * A log file of kubeling that is rotated while it is written; rotation loses and splits no line.
 */
export class RotatingLog implements LogOutput, AsyncDisposable {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  #file: FileHandle;
  #output: LogOutput;
  #bytes: number;

  static async open(
    path: string,
    { clock, maxBytes = maxLogBytes }: RotatingLogOptions,
  ): Promise<RotatingLog> {
    await rotateLog(path, 'none', maxBytes);
    const file = await open(path, 'a', logMode);
    return new RotatingLog(path, { clock, maxBytes }, file, await logSize(path));
  }

  private constructor(path: string, options: Required<RotatingLogOptions>, file: FileHandle, bytes: number) {
    this.#path = path;
    this.#clock = options.clock;
    this.#maxBytes = options.maxBytes;
    this.#file = file;
    this.#output = descriptorOutput(file.fd, options.clock);
    this.#bytes = bytes;
  }

  /**
   * Appends the text to the log file. The caller waits for each call to end before the next one.
   */
  async write(text: string): Promise<void> {
    if (this.#bytes > this.#maxBytes) await this.#rotate();
    this.#bytes += Buffer.byteLength(text);
    await this.#output.write(text);
  }

  writeSync(text: string): void {
    this.#bytes += Buffer.byteLength(text);
    this.#output.writeSync(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  /**
   * Rotates the log. If this fails, the log is still written, and rotation is retried at the next
   * limit.
   */
  async #rotate(): Promise<void> {
    this.#bytes = 0;
    try {
      await rotateLog(this.#path, 'none', this.#maxBytes);
      const old = this.#file;
      // The last lines before an exit may be written at any time, so a file is always open.
      const file = await open(this.#path, 'a', logMode);
      this.#file = file;
      this.#output = descriptorOutput(file.fd, this.#clock);
      await old.close();
    } catch {
      return;
    }
  }
}

export interface OpenLogOptions extends Omit<LoggerOptions, 'sink'> {
  readonly output: LogOutput;
  readonly maxBuffered?: number;
}

export interface OpenLog {
  readonly logger: Logger;
  readonly sink: BufferedLogSink;
}

/** The logger of a process with its bounded output buffer, which reports lost lines. */
export function openLog(options: OpenLogOptions): OpenLog {
  const { clock, format, output } = options;
  const pid = options.pid ?? process.pid;
  const gapLine = (dropped: number) =>
    formatRecord(format, pid, {
      severity: 'warning',
      level: 0,
      time: clock.now(),
      caller: { path: 'log', line: 0 },
      message: 'Dropped log lines because the output was blocked',
      error: undefined,
      fields: { lines: dropped },
    });
  const bound = options.maxBuffered === undefined ? {} : { maxBuffered: options.maxBuffered };
  const sink = new BufferedLogSink({ clock, output, gapLine, ...bound });
  return { logger: createLogger({ ...options, sink }), sink };
}

export const maxLogBytes: number = 10 * 1024 * 1024;

/**
 * How a log is rotated: a file without a writer is renamed; a file with a writer is copied and
 * truncated.
 */
export type LogWriter = 'none' | 'running';

/** Rotates the log when it has reached its limit: one rotated log is kept. */
export async function rotateLog(path: string, writer: LogWriter, maxBytes = maxLogBytes): Promise<void> {
  const size = await logSize(path);
  if (size <= maxBytes) return;
  if (writer === 'none') {
    await rename(path, `${path}.1`);
    return;
  }
  // The writer appends, so it continues at the new end of the file. Lines written between copying
  // and truncating are lost.
  await copyFile(path, `${path}.1`);
  await truncate(path);
}

export async function logSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

const tailBytes = 16 * 1024;

/** Returns the last lines of the log that were written after the offset. */
export async function tailLog(path: string, fromByte: number, lines: number): Promise<string> {
  const size = await logSize(path);
  const start = Math.max(fromByte, size - tailBytes);
  if (start >= size) return '';
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
  return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-lines).join('\n');
}
