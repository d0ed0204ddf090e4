import { type FileHandle, open } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { descriptorOutput, type LogOutput } from './buffered-sink.ts';
import { logSize, maxLogBytes, rotateLog } from './log-file.ts';

export interface RotatingLogOptions {
  readonly clock: Clock;
  /** How large the log may become before its content becomes the one old log; 10 MiB unless given. */
  readonly maxBytes?: number;
}

const logMode = 0o640;

/** A log file of our own, kept within its limit while it is written to: no line is lost or torn by that. */
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

  /** One at a time. */
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

  /** A disk that does not let us rotate may still let us write: the log then goes on, and is tried again at its next limit. */
  async #rotate(): Promise<void> {
    this.#bytes = 0;
    try {
      await rotateLog(this.#path, 'none', this.#maxBytes);
      const old = this.#file;
      // Last words may be written at any moment: there is always a file to write them to.
      const file = await open(this.#path, 'a', logMode);
      this.#file = file;
      this.#output = descriptorOutput(file.fd, this.#clock);
      await old.close();
    } catch {
      return;
    }
  }
}
