import { KubelingError } from '../../lib/index.ts';

const lineFeed = 0x0a;

/**
 * Cuts a stream of bytes into lines. Characters and lines may be split anywhere between chunks: only whole lines are
 * decoded. A line that grows past the limit is refused as soon as that is seen.
 */
export class WatchLineSplitter {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether bytes of a line are held that has not ended. */
  get isMidLine(): boolean {
    return this.#size > 0;
  }

  /** The lines that end in this chunk, without empty ones. Take them all before giving the next chunk. */
  *push(chunk: Buffer): Generator<string, void, undefined> {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      const line = this.#finish(chunk.subarray(from, end));
      from = end + 1;
      if (line !== '') yield line;
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from));
  }

  #finish(last: Buffer): string {
    if (this.#size === 0) return this.#checked(last).toString('utf8');
    this.#hold(last);
    const line = Buffer.concat(this.#parts, this.#size).toString('utf8');
    this.#parts = [];
    this.#size = 0;
    return line;
  }

  #hold(part: Buffer): void {
    this.#size += part.length;
    this.#parts.push(part);
    if (this.#size > this.#limit) this.#tooLong();
  }

  #checked(line: Buffer): Buffer {
    if (line.length > this.#limit) this.#tooLong();
    return line;
  }

  #tooLong(): never {
    this.#parts = [];
    throw new KubelingError(
      'API_BAD_ANSWER',
      `Cannot read the watch as an event must be at most ${this.#limit} bytes: one is longer`,
    );
  }
}
