/**
 * The Huffman code of HPACK. It is canonical: the codes of one length are consecutive numbers in
 * the order of their symbols, and shorter codes come first, so the code lengths define it.
 */
import { Http2Error } from './frames.ts';

/** The code length of each byte value, and at the end that of the end-of-string symbol. */
// biome-ignore format: sixteen to a line, as one looks them up
const codeLengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

const endSymbol = 256;

/**
 * The code as a binary tree in one array: two numbers for each node, for bit 0 and bit 1. A
 * positive number is the index of the next node, a negative one a symbol, as -1 - symbol.
 */
const tree = buildTree();

function buildTree(): Int16Array {
  const nodes = new Int16Array(2 * endSymbol);
  let used = 1;
  let code = 0;
  let bits = 0;
  const symbols = [...codeLengths.keys()].sort((a, b) => lengthOf(a) - lengthOf(b) || a - b);
  for (const symbol of symbols) {
    code <<= lengthOf(symbol) - bits;
    bits = lengthOf(symbol);
    let at = 0;
    for (let left = bits - 1; left > 0; left--) {
      const branch = at * 2 + ((code >>> left) & 1);
      nodes[branch] ||= used++;
      at = nodes[branch] ?? 0;
    }
    nodes[at * 2 + (code & 1)] = -1 - symbol;
    code++;
  }
  return nodes;
}

function lengthOf(symbol: number): number {
  return codeLengths[symbol] ?? 0;
}

/**
 * Decodes the Huffman code from `start` to `end`; each decoded byte becomes a character. Throws an
 * Http2Error for an invalid code.
 */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string {
  // The text has at most this length, because the shortest code has five bits.
  const text = Buffer.allocUnsafe(Math.ceil(((end - start) * 8) / 5));
  let length = 0;
  let node = 0;
  /**
   * The number of bits since the last symbol, and whether all of them were 1: only such padding is
   * allowed.
   */
  let open = 0;
  let padding = true;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    for (let left = 7; left >= 0; left--) {
      const bit = (byte >>> left) & 1;
      const next = tree[node * 2 + bit] ?? 0;
      open++;
      if (bit === 0) padding = false;
      if (next > 0) {
        node = next;
        continue;
      }
      if (next === -1 - endSymbol) throw malformed('it contains the end-of-string symbol');
      text[length++] = -1 - next;
      node = 0;
      open = 0;
      padding = true;
    }
  }
  if (open > 7 || !padding) throw malformed('it ends inside a symbol');
  return text.toString('latin1', 0, length);
}

function malformed(why: string): Http2Error {
  return new Http2Error('COMPRESSION_ERROR', `Cannot read a header as its Huffman code is invalid: ${why}`);
}
