import { describeError } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import type { OpenFile, SimulatedFiles } from './files.ts';
import { formatNanos } from './nano-clock.ts';

export type OutputStream = 'stdout' | 'stderr';

/** The maximum length of a log line; longer lines are split into parts. */
const maxLineBytes = 16_384;

export interface ContainerLogOptions {
  readonly path: string;
  readonly files: SimulatedFiles;
  readonly now: () => bigint;
}

/**
 * Writes the output of a container in the CRI log format: `<time> <stream> <F|P> <text>`, with P
 * for a part whose line continues. The file stays open, so that a renamed log is written until it
 * is reopened.
 */
export class ContainerLog {
  readonly #options: ContainerLogOptions;
  readonly #partial: Record<OutputStream, string> = { stdout: '', stderr: '' };
  #file: OpenFile | undefined;

  /** Opens the log file; throws when it cannot be opened. */
  constructor(options: ContainerLogOptions) {
    this.#options = options;
    this.#file = open(options);
  }

  write(stream: OutputStream, text: string): void {
    let rest = this.#partial[stream] + text;
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      this.#line(stream, rest.slice(0, end), 'F');
      rest = rest.slice(end + 1);
    }
    while (rest.length > maxLineBytes) {
      this.#entry(stream, 'P', rest.slice(0, maxLineBytes));
      rest = rest.slice(maxLineBytes);
    }
    this.#partial[stream] = rest;
  }

  /** Reopens the log: later output is written to the file that now has the path of the log. */
  reopen(): void {
    const fresh = open(this.#options);
    this.#file?.close();
    this.#file = fresh;
  }

  /** Closes the log; an unterminated last line is written as a part. */
  close(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      if (this.#partial[stream] !== '') this.#line(stream, this.#partial[stream], 'P');
      this.#partial[stream] = '';
    }
    this.#file?.close();
    this.#file = undefined;
  }

  #line(stream: OutputStream, text: string, lastTag: 'F' | 'P'): void {
    let rest = text;
    while (rest.length > maxLineBytes) {
      this.#entry(stream, 'P', rest.slice(0, maxLineBytes));
      rest = rest.slice(maxLineBytes);
    }
    this.#entry(stream, lastTag, rest);
  }

  #entry(stream: OutputStream, tag: 'F' | 'P', text: string): void {
    this.#file?.append(`${formatNanos(this.#options.now())} ${stream} ${tag} ${text}\n`);
  }
}

function open({ path, files }: ContainerLogOptions): OpenFile {
  try {
    return files.open(path);
  } catch (error) {
    const why =
      (error as { code?: unknown }).code === 'ENOENT' ? 'no such file or directory' : describeError(error);
    throw new GrpcError('UNKNOWN', `failed to create and open log file: open ${path}: ${why}`, error);
  }
}
