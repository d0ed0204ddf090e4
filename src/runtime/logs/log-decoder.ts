import type { LineHead, LogStream } from './log-line.ts';
import { isBefore, LineSplitter, type LogTime } from './log-line.ts';

/** What of a log is shown, and how. */
export interface LogView {
  /** Lines that began earlier are left out. */
  readonly since?: LogTime | undefined;
  readonly timestamps?: 'shown' | 'hidden' | undefined;
  /** Of what is shown. */
  readonly limitBytes?: number | undefined;
  readonly stream?: LogStream | 'all' | undefined;
}

const newline = Uint8Array.of(0x0a);

/**
 * Turns the bytes of a log's files into what is shown: parts of a line are joined, also across files, the time stands
 * once before each joined line. Text is passed on as it is, byte for byte.
 */
export class LogDecoder {
  readonly #view: LogView;
  readonly #lines: LineSplitter;
  #out: Uint8Array[] = [];
  #left: number;
  /** Of the line that is being put together. */
  #line: 'none' | 'shown' | 'left-out' = 'none';
  /** A line of a stream that is not asked for. */
  #ignoring = false;
  #isPart = false;
  /** The last line shown has no end, and cannot get one any more. */
  #unended = false;

  /** `position` is where in the first file the bytes begin. */
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

  /** All that may be shown was. */
  get isDone(): boolean {
    return this.#left <= 0;
  }

  /** Whether a line of the file has begun that has not ended. */
  get isInLine(): boolean {
    return this.#lines.isInLine;
  }

  /** Answers what is to be shown; the chunk may be used anew after it. */
  decode(chunk: Uint8Array): Uint8Array {
    this.#lines.feed(chunk);
    return this.#take();
  }

  /** Nothing more comes of this file; of the next one more may. */
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
    const { since, timestamps, stream: wanted = 'all' } = this.#view;
    this.#ignoring = wanted !== 'all' && wanted !== stream;
    if (this.#ignoring) return;
    this.#isPart = is === 'part';
    if (this.#line !== 'none') return;
    this.#line = since !== undefined && isBefore(time, since) ? 'left-out' : 'shown';
    if (this.#line === 'left-out') return;
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
