import type { LogHandle } from './log-files.ts';
import { HeadParser, LineSplitter, maxHeadBytes, maxJsonLineBytes, parseJsonLine } from './log-line.ts';
import type { OpenLogFile } from './log-trail.ts';
import { chunksOf } from './log-trail.ts';

const blockBytes = 64 << 10;
const newline = 0x0a;
const brace = 0x7b;

/**
 * Finds where the last lines of a log start, backwards through its files. Counts shown lines: a
 * line of several parts counts once, and so does a line without a newline.
 */
export class TailSearch {
  readonly #heads = new HeadParser();
  readonly #requested: number;
  #found = 0;
  #read: 'nothing' | 'lines' = 'nothing';

  constructor(lines: number) {
    this.#requested = lines;
  }

  /**
   * Returns the offset at which the requested last lines start in this file, of which only the
   * first `size` bytes are searched; undefined when the lines begin in an earlier file.
   */
  async search(file: OpenLogFile, size: number): Promise<number | undefined> {
    return file.format === 'gzip' ? await this.#forwards(file) : await this.#backwards(file.handle, size);
  }

  async #backwards(handle: LogHandle, size: number): Promise<number | undefined> {
    const block = new Uint8Array(blockBytes);
    let start = size;
    let end = size;
    for (let right = size; right > 0; ) {
      const left = Math.max(0, right - blockBytes);
      const bytes = block.subarray(0, await handle.read(block.subarray(0, right - left), left));
      for (let at = bytes.length; at >= 0; ) {
        at = at === 0 ? -1 : bytes.lastIndexOf(newline, at - 1);
        // Only the block at the start of the file is known to begin at the start of a line.
        if (at < 0 && left > 0) break;
        const lineStart = left + at + 1;
        if (lineStart === end) continue;
        const is = await this.#classify(handle, bytes.subarray(at + 1), lineStart, end);
        end = lineStart;
        if (is === 'none') continue;
        if (!this.#count(is)) return start;
        start = lineStart;
      }
      right = left;
    }
    return this.#requested === 0 ? size : undefined;
  }

  /** Counts a log line; returns whether it belongs to the requested last lines. */
  #count(is: 'end' | 'part'): boolean {
    if (is === 'end' || this.#read === 'nothing') {
      if (this.#found === this.#requested) return false;
      this.#found++;
    }
    this.#read = 'lines';
    return true;
  }

  /**
   * Returns `end` or `part` as in `LineHead`, or `none` for an invalid line; `inBlock` is the part
   * of the line that the block contains.
   */
  async #classify(
    handle: LogHandle,
    inBlock: Uint8Array,
    start: number,
    end: number,
  ): Promise<'end' | 'part' | 'none'> {
    const read = async (length: number) => {
      if (length <= inBlock.length) return inBlock.subarray(0, length);
      const bytes = new Uint8Array(length);
      return bytes.subarray(0, await handle.read(bytes, start));
    };
    const head = await read(Math.min(end - start, maxHeadBytes));
    if (head[0] !== brace) return this.#heads.parse(head)?.is ?? 'none';
    if (end - start > maxJsonLineBytes) return 'none';
    return parseJsonLine(await read(end - start))?.is ?? 'none';
  }

  /**
   * A compressed file is read from its start twice: once to count the lines, once to find the
   * offset.
   */
  async #forwards(file: OpenLogFile): Promise<number | undefined> {
    let last: 'end' | 'part' | undefined;
    let ends = 0;
    await eachLine(file, (is) => {
      last = is;
      if (is === 'end') ends++;
      return 'continue';
    });
    const unended = last === 'part' && this.#read === 'nothing' ? 1 : 0;
    if (last !== undefined) this.#read = 'lines';
    const skipped = ends + unended - (this.#requested - this.#found);
    if (skipped <= 0) {
      this.#found += ends + unended;
      return undefined;
    }
    return await afterEnds(file, Math.min(skipped, ends));
  }
}

/** Returns the offset after the given number of complete lines. */
async function afterEnds(file: OpenLogFile, count: number): Promise<number> {
  let left = count;
  let place = 0;
  await eachLine(file, (is, position) => {
    place = position;
    if (is === 'end') left--;
    return left > 0 ? 'continue' : 'stop';
  });
  return place;
}

async function eachLine(
  file: OpenLogFile,
  visit: (is: 'end' | 'part', position: number) => 'continue' | 'stop',
): Promise<void> {
  let is: 'end' | 'part' = 'end';
  let state: 'continue' | 'stop' = 'continue';
  const lines = new LineSplitter({
    begin: (head) => {
      is = head.is;
    },
    text: () => {},
    end: (_how, position) => {
      if (state === 'continue') state = visit(is, position);
    },
  });
  const isStopped = () => state === 'stop';
  for await (const chunk of chunksOf(file, { from: 0 })) {
    lines.feed(chunk);
    if (isStopped()) return;
  }
  lines.endFile();
}
