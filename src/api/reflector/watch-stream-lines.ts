import { KubelingError } from '../../lib/index.ts';

const lineFeed = 0x0a;

/**
 * Splits a byte stream into lines. Characters and lines may be split between chunks; only complete
 * lines are decoded. A line is rejected as soon as it exceeds the limit.
 */
export class WatchLineSplitter {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether an incomplete line is buffered. */
  get isMidLine(): boolean {
    return this.#size > 0;
  }

  /**
   * Yields the lines that this chunk completes, except empty lines. They must be consumed before
   * the next chunk.
   */
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
