import type { LineHead, LogStream } from './log-line.ts';
import { isBefore, LineSplitter, type LogTime } from './log-line.ts';

/** The options for showing a log. */
export interface LogView {
  /** Lines with a timestamp before this time are omitted. */
  readonly since?: LogTime | undefined;
  readonly timestamps?: 'shown' | 'hidden' | undefined;
  /** The maximum number of bytes to show. */
  readonly limitBytes?: number | undefined;
  readonly stream?: LogStream | 'all' | undefined;
}

const newline = Uint8Array.of(0x0a);

/**
 * Converts the bytes of log files to the shown text: joins partial lines, also across files, and
 * puts the timestamp before each joined line. The text itself stays unchanged.
 */
export class LogDecoder {
  readonly #view: LogView;
  readonly #lines: LineSplitter;
  #out: Uint8Array[] = [];
  #left: number;
  /** The state of the joined line that is being read. */
  #line: 'none' | 'shown' | 'skipped' = 'none';
  /** Whether the current line is skipped because its stream was not requested. */
  #ignoring = false;
  #isPart = false;
  /** Whether the last shown line has no newline because its file ended within the line. */
  #unended = false;

  /** Creates a decoder; `position` is the offset of the first byte in the first file. */
  constructor(view: LogView, position = 0) {
    this.#view = view;
    this.#left = view.limitBytes ?? Number.POSITIVE_INFINITY;
    this.#lines = new LineSplitter(
      {
        begin: (head) => this.#begin(head),
        text: (bytes) => this.#text(bytes),
        end: (how) => this.#end(how),
      },
      position,
    );
  }

  /** Whether the limit of shown bytes is reached. */
  get isDone(): boolean {
    return this.#left <= 0;
  }

  /** Whether the file ended within a line. */
  get isInLine(): boolean {
    return this.#lines.isInLine;
  }

  /** Returns the text to show for a chunk; the chunk's buffer can be reused afterwards. */
  decode(chunk: Uint8Array): Uint8Array {
    this.#lines.feed(chunk);
    return this.#take();
  }

  /** Ends the current file; further bytes belong to the next file. */
  endFile(): Uint8Array {
    this.#lines.endFile();
    return this.#take();
  }

  #take(): Uint8Array {
    const out = Buffer.concat(this.#out);
    this.#out = [];
    return out;
  }

  #begin({ time, stream, is, stamp }: LineHead): void {
    const { since, timestamps, stream: requested = 'all' } = this.#view;
    this.#ignoring = requested !== 'all' && requested !== stream;
    if (this.#ignoring) return;
    this.#isPart = is === 'part';
    if (this.#line !== 'none') return;
    this.#line = since !== undefined && isBefore(time, since) ? 'skipped' : 'shown';
    if (this.#line === 'skipped') return;
    if (this.#unended) this.#put(newline);
    this.#unended = false;
    if (timestamps === 'shown') this.#put(Buffer.from(`${stamp} `));
  }

  #text(bytes: Uint8Array): void {
    if (!this.#ignoring && this.#line === 'shown') this.#put(bytes);
  }

  #end(how: 'whole' | 'cut'): void {
    if (this.#ignoring || this.#isPart) return;
    if (this.#line === 'shown' && how === 'whole') this.#put(newline);
    if (this.#line === 'shown' && how === 'cut') this.#unended = true;
    this.#line = 'none';
  }

  #put(bytes: Uint8Array): void {
    const piece = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= piece.length;
    if (piece.length > 0) this.#out.push(piece);
  }
}
