/**
 * A position in a log: the line, identified by its timestamp and its index among the lines with
 * that timestamp, and a number of bytes into it.
 */
export interface LogPosition {
  readonly stamp: string;
  readonly ordinal: number;
  readonly bytes: number;
  readonly line: 'continued' | 'ended';
}

const newline = 0x0a;
const space = 0x20;

/**
 * Reads a log whose lines start with timestamps, and returns the text to print. Tracks the
 * position, so that another reader can resume after an interruption and skip text that was printed
 * before.
 */
export class LogLineReader {
  readonly #timestamps: 'shown' | 'hidden';
  /** The position up to which the text was printed by an earlier reader. */
  #behind: LogPosition | undefined;
  #stamp = '';
  #ordinal = 0;
  #bytes = 0;
  #state: 'stamp' | 'text' | 'ended' = 'stamp';
  #partOfStamp = '';

  constructor(timestamps: 'shown' | 'hidden', behind?: LogPosition) {
    this.#timestamps = timestamps;
    this.#behind = behind;
  }

  /** Returns the current position; undefined before the first line. */
  get position(): LogPosition | undefined {
    if (this.#ordinal === 0) return this.#behind;
    if (this.#behind !== undefined) return this.#behind;
    const line = this.#state === 'text' ? 'continued' : 'ended';
    return { stamp: this.#stamp, ordinal: this.#ordinal, bytes: this.#bytes, line };
  }

  /** Whether the reader has reached the position to resume from. */
  get hasCaughtUp(): boolean {
    return this.#behind === undefined;
  }

  read(chunk: Uint8Array): Buffer {
    const out: Uint8Array[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.#state === 'text') at = this.#readText(chunk, at, out);
      else at = this.#readStamp(chunk, at, out);
    }
    return Buffer.concat(out);
  }

  #readStamp(chunk: Uint8Array, at: number, out: Uint8Array[]): number {
    const found = chunk.indexOf(space, at);
    const end = found < 0 ? chunk.length : found;
    this.#partOfStamp += Buffer.from(chunk.subarray(at, end)).toString('latin1');
    if (found < 0) return end;
    const stamp = this.#partOfStamp;
    this.#partOfStamp = '';
    this.#ordinal = stamp === this.#stamp ? this.#ordinal + 1 : 1;
    this.#stamp = stamp;
    this.#bytes = 0;
    this.#state = 'text';
    if (this.#timestamps === 'shown' && this.#behind === undefined) out.push(Buffer.from(`${stamp} `));
    return found + 1;
  }

  #readText(chunk: Uint8Array, at: number, out: Uint8Array[]): number {
    const found = chunk.indexOf(newline, at);
    const end = found < 0 ? chunk.length : found;
    const text = chunk.subarray(at, end);
    const isHere = this.#isBehindHere();
    const skipped =
      this.#behind === undefined ? 0 : isHere ? Math.max(0, this.#behind.bytes - this.#bytes) : text.length;
    if (skipped < text.length) out.push(text.subarray(skipped));
    this.#bytes += text.length;
    const isReached = isHere && this.#behind !== undefined && this.#bytes >= this.#behind.bytes;
    const isPrinted = this.#behind !== undefined && (!isHere || this.#behind.line === 'ended');
    if (found >= 0 && !isPrinted) out.push(chunk.subarray(found, found + 1));
    if (found >= 0) this.#state = 'ended';
    if (isReached && (found >= 0 || this.#behind?.line === 'continued')) this.#behind = undefined;
    return found < 0 ? end : found + 1;
  }

  #isBehindHere(): boolean {
    return this.#behind?.stamp === this.#stamp && this.#behind.ordinal === this.#ordinal;
  }
}
