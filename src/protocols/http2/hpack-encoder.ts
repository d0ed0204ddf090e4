import { Http2Error } from './frames.ts';
import { fieldBytes, type HeaderField, staticTable } from './hpack-tables.ts';

/**
 * An encoded header block, or part of one, without references to earlier blocks, so that it can be
 * sent repeatedly.
 */
export interface HeaderBlock {
  readonly bytes: Buffer;
  /** The size of the headers as SETTINGS_MAX_HEADER_LIST_SIZE counts it. */
  readonly listBytes: number;
}

/**
 * A dynamic table size update to zero, sent before the first block and when the peer resizes its
 * table.
 */
export const zeroTableSizeUpdate = Buffer.from([0x20]);

/** Encodes headers. Throws an Http2Error for a name or a value that cannot be sent. */
export function encodeHeaders(fields: Iterable<HeaderField>): HeaderBlock {
  const parts: Buffer[] = [];
  let listBytes = 0;
  for (const [name, value] of fields) {
    check(name, value);
    parts.push(encodeField(name, value));
    listBytes += fieldBytes(name, value);
  }
  return { bytes: Buffer.concat(parts), listBytes };
}

export function joinBlocks(one: HeaderBlock, other: HeaderBlock): HeaderBlock {
  return { bytes: Buffer.concat([one.bytes, other.bytes]), listBytes: one.listBytes + other.listBytes };
}

/**
 * Encodes a header by its index in the static table, otherwise as a literal without indexing, with
 * an indexed name if possible.
 */
function encodeField(name: string, value: string): Buffer {
  const exact = staticTable.findIndex((field) => field[0] === name && field[1] === value);
  if (exact >= 0) return integer(7, 0x80, exact + 1);
  const named = staticTable.findIndex((field) => field[0] === name);
  const head = integer(4, 0, named + 1);
  return Buffer.concat(named >= 0 ? [head, text(value)] : [head, text(name), text(value)]);
}

function text(value: string): Buffer {
  return Buffer.concat([integer(7, 0, value.length), Buffer.from(value, 'latin1')]);
}

function integer(prefixBits: number, flags: number, value: number): Buffer {
  const most = 2 ** prefixBits - 1;
  if (value < most) return Buffer.from([flags | value]);
  const bytes = [flags | most];
  let rest = value - most;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function check(name: string, value: string): void {
  if (!/^:?[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) {
    throw new Http2Error('PROTOCOL_ERROR', `Cannot send a header of the name ${JSON.stringify(name)}`);
  }
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    throw new Http2Error(
      'PROTOCOL_ERROR',
      `Cannot send the header ${name} as it contains a character that is not allowed there`,
    );
  }
}
