import type { Headers } from './hpack-decoder.ts';

const maxBlocks = 8;
const maxBlockBytes = 256;

/**
 * What the last few header blocks meant. Nearly all answers have the same head and the same trailers, byte for byte.
 * Only for blocks that mean the same wherever they come: those that have nothing to do with the dynamic table.
 */
export class BlockCache {
  readonly #entries: { readonly block: Buffer; readonly headers: Headers }[] = [];
  #next = 0;

  find(block: Buffer): Headers | undefined {
    for (const entry of this.#entries) if (isSame(entry.block, block)) return entry.headers;
    return undefined;
  }

  /** Takes the place of the oldest. */
  keep(block: Buffer, headers: Headers): void {
    if (block.length > maxBlockBytes) return;
    this.#entries[this.#next] = { block: Buffer.from(block), headers };
    this.#next = (this.#next + 1) % maxBlocks;
  }
}

/** Blocks are a few bytes long: a call into native code would cost more. */
function isSame(one: Buffer, other: Buffer): boolean {
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}
