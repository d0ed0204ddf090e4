import { Http2Error } from './frames.ts';
import { DynamicTable, fieldBytes, type HeaderField, staticTable } from './hpack-tables.ts';
import { decodeHuffman } from './huffman.ts';

/**
 * Decoded headers. Names are in lower case; the values of a repeated name are joined with commas.
 */
export type Headers = ReadonlyMap<string, string>;

/**
 * The default size of the dynamic table, which the peer may use until it has received the settings
 * of this client.
 */
const tableBytes = 4_096;

/**
 * Decodes HPACK header blocks, each of which may refer to entries of previous ones: every block of
 * a connection must be decoded, even if its headers are not needed.
 */
export class HpackDecoder {
  readonly #table = new DynamicTable(tableBytes);
  readonly #cache = new BlockCache();
  readonly #maxListBytes: number;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Whether the current block uses or changes the dynamic table. */
  #usesTable = false;

  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /**
   * Decodes a header block. Throws an Http2Error for an invalid block; no later block can be
   * decoded after that.
   */
  decode(block: Buffer): Headers | 'too-large' {
    const known = this.#cache.find(block);
    if (known !== undefined) return known;
    this.#block = block;
    this.#at = 0;
    this.#usesTable = false;
    const headers = this.#decode();
    if (headers !== 'too-large' && !this.#usesTable) this.#cache.keep(block, headers);
    return headers;
  }

  #decode(): Headers | 'too-large' {
    const headers = new Map<string, string>();
    let listBytes = 0;
    let mayResize = true;
    while (this.#at < this.#block.length) {
      const first = this.#byte(this.#at);
      if ((first & 0xe0) === 0x20) {
        if (!mayResize) throw malformed('it has a table size update after a header');
        this.#resize();
        continue;
      }
      mayResize = false;
      const [name, value] = this.#field(first);
      listBytes += fieldBytes(name, value);
      // Decoding continues above the size limit, because the next block may refer to entries of
      // this one.
      if (listBytes > this.#maxListBytes) continue;
      const before = headers.get(name);
      headers.set(name, before === undefined ? value : `${before}, ${value}`);
    }
    return listBytes > this.#maxListBytes ? 'too-large' : headers;
  }

  #resize(): void {
    const bytes = this.#integer(5);
    if (bytes > tableBytes) {
      throw malformed(`its table must not have more than ${tableBytes} bytes: it wants ${bytes}`);
    }
    this.#usesTable = true;
    this.#table.resize(bytes);
  }

  #field(first: number): HeaderField {
    if (first >= 0x80) return this.#known(this.#integer(7));
    const isIndexed = first >= 0x40;
    const index = this.#integer(isIndexed ? 6 : 4);
    const name = index === 0 ? this.#string() : this.#known(index)[0];
    const field: HeaderField = [name, this.#string()];
    if (isIndexed) {
      this.#usesTable = true;
      this.#table.add(field);
    }
    return field;
  }

  #known(index: number): HeaderField {
    const fixed = staticTable[index - 1];
    if (fixed !== undefined) return fixed;
    this.#usesTable = true;
    const field = index === 0 ? undefined : this.#table.at(index - 1 - staticTable.length);
    if (field === undefined) throw malformed(`it refers to header ${index}, which is not there`);
    return field;
  }

  #string(): string {
    const isHuffman = (this.#byte(this.#at) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#block.length) throw malformed('it ends inside a string');
    this.#at = end;
    return isHuffman ? decodeHuffman(this.#block, start, end) : this.#block.toString('latin1', start, end);
  }

  /**
   * Reads an integer from the low bits of a byte, continued in further bytes if it does not fit.
   */
  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#byte(this.#at++) & most;
    if (value < most) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.#byte(this.#at++);
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed('a number in it is too large');
  }

  #byte(at: number): number {
    const byte = this.#block[at];
    if (byte === undefined) throw malformed('it ends inside a number');
    return byte;
  }
}

function malformed(why: string): Http2Error {
  return new Http2Error('COMPRESSION_ERROR', `Cannot read a header block: ${why}`);
}

const maxBlocks = 8;
const maxBlockBytes = 256;

/**
 * The header blocks that were decoded last. Nearly all responses have identical headers and
 * trailers. Only blocks that do not use the dynamic table are stored.
 */
class BlockCache {
  readonly #entries: { readonly block: Buffer; readonly headers: Headers }[] = [];
  #next = 0;

  find(block: Buffer): Headers | undefined {
    for (const entry of this.#entries) if (isSame(entry.block, block)) return entry.headers;
    return undefined;
  }

  /** Stores a block in place of the oldest one. */
  keep(block: Buffer, headers: Headers): void {
    if (block.length > maxBlockBytes) return;
    this.#entries[this.#next] = { block: Buffer.from(block), headers };
    this.#next = (this.#next + 1) % maxBlocks;
  }
}

/** Compares bytes in JavaScript: blocks are so short that a native call would cost more. */
function isSame(one: Buffer, other: Buffer): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}
