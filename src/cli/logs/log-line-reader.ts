/**
 * A position in a log: a number of bytes into a line, which is identified by its time and its index
 * among the lines of that time.
 */
export interface LogPosition {
  readonly stamp: string;
  readonly ordinal: number;
  readonly bytes: number;
  readonly line: 'going-on' | 'ended';
}

const newline = 0x0a;
const space = 0x20;

/**
 * Reads a log whose lines start with their times, and returns the text to print. It tracks the
 * position, so that another reader can continue after an interruption: text that was printed before
 * is skipped.
 */
export class LogLineReader {
  readonly #timestamps: 'shown' | 'hidden';
  /** Text up to this position was printed before. */
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

  /** Undefined before the first line. */
  get position(): LogPosition | undefined {
    if (this.#ordinal === 0) return this.#behind;
    if (this.#behind !== undefined) return this.#behind;
    const line = this.#state === 'text' ? 'going-on' : 'ended';
    return { stamp: this.#stamp, ordinal: this.#ordinal, bytes: this.#bytes, line };
  }

  /** Whether the position to continue from has been reached. */
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
    if (isReached && (found >= 0 || this.#behind?.line === 'going-on')) this.#behind = undefined;
    return found < 0 ? end : found + 1;
  }

  #isBehindHere(): boolean {
    return this.#behind?.stamp === this.#stamp && this.#behind.ordinal === this.#ordinal;
  }
}
