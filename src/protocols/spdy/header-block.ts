/**
 * The headers of a stream as SPDY/3 sends them: one zlib stream a connection and direction, primed with a dictionary
 * all speakers know. The blocks made here are stored, not squeezed: a handful of short headers a connection is not worth
 * a compressor, and whoever reads zlib reads stored blocks.
 */

/** Method deflate with the largest window, a preset dictionary follows. */
const zlibHeader = [0x78, 0xf9];
/** The Adler-32 sum by which SPDY/3's dictionary is known. */
const dictionaryId = 0xe3c6a7c2;

const longestStored = 0xffff;

export type StreamHeaders = Readonly<Record<string, string>>;

/** The writing end of one connection's header compression. Blocks must be sent in the order they were made. */
export class HeaderEncoder {
  #begun = false;

  encode(headers: StreamHeaders): Buffer {
    const parts: Buffer[] = [];
    if (!this.#begun) {
      const start = Buffer.alloc(6);
      start.set(zlibHeader);
      start.writeUInt32BE(dictionaryId, 2);
      parts.push(start);
      this.#begun = true;
    }
    const plain = plainBlock(headers);
    for (let at = 0; at < plain.length; at += longestStored) {
      parts.push(...stored(plain.subarray(at, at + longestStored)));
    }
    // An empty block tells readers to hand out what they have; some would wait for the next one otherwise.
    return Buffer.concat([...parts, ...stored(Buffer.alloc(0))]);
  }
}

function plainBlock(headers: StreamHeaders): Buffer {
  const entries = Object.entries(headers);
  const count = Buffer.alloc(4);
  count.writeUInt32BE(entries.length);
  const words = entries.flatMap(([name, value]) => [...counted(name.toLowerCase()), ...counted(value)]);
  return Buffer.concat([count, ...words]);
}

function counted(text: string): readonly Buffer[] {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return [length, bytes];
}

/** One stored block of deflate: not the last, a length, its complement, the bytes as they are. */
function stored(bytes: Buffer): readonly Buffer[] {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(bytes.length, 1);
  head.writeUInt16LE(~bytes.length & 0xffff, 3);
  return [head, bytes];
}
