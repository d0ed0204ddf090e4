import { KubelingError } from '../../lib/index.ts';

/**
 * The frames of SPDY/3.1 that a client of a container runtime's streaming server needs.
 *
 *   control   1 version:15 type:16  flags:8 length:24  …
 *   data      0 stream:31           flags:8 length:24  …
 */

const version = 3;
const headBytes = 8;
/** The maximum size of a control frame, which servers never come close to. */
const maxControlBytes = 64 * 1024;

const types = { synStream: 1, synReply: 2, reset: 3, ping: 6, goAway: 7 } as const;

const flagFin = 1;

export const resetStatus = { refused: 3, cancel: 5 } as const;

/**
 * A decoded SPDY frame. A long data frame is delivered in several pieces as it arrives; only the
 * last piece may end the stream.
 */
export type SpdyFrame =
  | { readonly kind: 'data'; readonly streamId: number; readonly bytes: Buffer; readonly fin: boolean }
  | { readonly kind: 'reply'; readonly streamId: number; readonly fin: boolean }
  | { readonly kind: 'opened'; readonly streamId: number }
  | { readonly kind: 'reset'; readonly streamId: number; readonly status: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'go-away' };

export function synStreamFrame(streamId: number, headerBlock: Buffer): Buffer {
  const body = Buffer.alloc(10);
  body.writeUInt32BE(streamId, 0);
  return controlFrame(types.synStream, Buffer.concat([body, headerBlock]));
}

export function spdyResetFrame(streamId: number, status: number): Buffer {
  return controlFrame(types.reset, words(streamId, status));
}

export function pingFrame(id: number): Buffer {
  return controlFrame(types.ping, words(id));
}

export function spdyGoAwayFrame(lastStreamId: number): Buffer {
  return controlFrame(types.goAway, words(lastStreamId, 0));
}

/** Encodes the header of a data frame; the data follows it. */
export function dataHead(streamId: number, length: number, end: 'fin' | 'more'): Buffer {
  const head = words(streamId, length);
  head[4] = end === 'fin' ? flagFin : 0;
  return head;
}

function controlFrame(type: number, body: Buffer): Buffer {
  const head = words(0, body.length);
  head.writeUInt16BE(0x8000 | version, 0);
  head.writeUInt16BE(type, 2);
  return Buffer.concat([head, body]);
}

function words(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) buffer.writeUInt32BE(value, index * 4);
  return buffer;
}

type Expecting =
  | { readonly what: 'head' }
  | { readonly what: 'control'; readonly type: number; readonly flags: number; readonly length: number }
  | { readonly what: 'data'; readonly streamId: number; readonly fin: boolean; left: number };

/** Decodes frames from chunks of any size; buffers at most one control frame. */
export class SpdyFrameReader {
  #held: Buffer = Buffer.alloc(0);
  #expecting: Expecting = { what: 'head' };

  /** Decodes a chunk. Throws SPDY_MALFORMED, after which no more can be read. */
  *push(chunk: Uint8Array): Generator<SpdyFrame> {
    const more = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#held = this.#held.length === 0 ? more : Buffer.concat([this.#held, more]);
    for (let step = this.#step(); step !== 'hungry'; step = this.#step()) {
      if (step !== 'silent') yield step;
    }
  }

  #step(): SpdyFrame | 'silent' | 'hungry' {
    const expecting = this.#expecting;
    switch (expecting.what) {
      case 'head':
        return this.#readHead();
      case 'control':
        return this.#readControl(expecting);
      case 'data':
        return this.#readData(expecting);
    }
  }

  #take(length: number): Buffer {
    const taken = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return taken;
  }

  #readHead(): SpdyFrame | 'silent' | 'hungry' {
    if (this.#held.length < headBytes) return 'hungry';
    const head = this.#take(headBytes);
    const first = head.readUInt32BE(0);
    const flags = head.readUInt8(4);
    const length = head.readUIntBE(5, 3);
    const fin = (flags & flagFin) !== 0;
    if (first < 0x8000_0000) {
      if (length === 0) return { kind: 'data', streamId: first, bytes: Buffer.alloc(0), fin };
      this.#expecting = { what: 'data', streamId: first, fin, left: length };
      return 'silent';
    }
    const spoken = (first >>> 16) & 0x7fff;
    if (spoken !== version) throw malformed(`its version must be ${version}: it is ${spoken}`);
    if (length > maxControlBytes) {
      throw malformed(`a control frame must not be longer than ${maxControlBytes} bytes: it has ${length}`);
    }
    this.#expecting = { what: 'control', type: first & 0xffff, flags, length };
    return 'silent';
  }

  #readData(frame: Extract<Expecting, { what: 'data' }>): SpdyFrame | 'hungry' {
    if (this.#held.length === 0) return 'hungry';
    const bytes = this.#take(frame.left);
    frame.left -= bytes.length;
    const isLast = frame.left === 0;
    if (isLast) this.#expecting = { what: 'head' };
    return { kind: 'data', streamId: frame.streamId, bytes, fin: isLast && frame.fin };
  }

  #readControl({
    type,
    flags,
    length,
  }: Extract<Expecting, { what: 'control' }>): SpdyFrame | 'silent' | 'hungry' {
    if (this.#held.length < length) return 'hungry';
    const body = this.#take(length);
    this.#expecting = { what: 'head' };
    switch (type) {
      case types.synStream:
        return { kind: 'opened', streamId: wordAt(body, 0) & 0x7fff_ffff };
      case types.synReply:
        return { kind: 'reply', streamId: wordAt(body, 0) & 0x7fff_ffff, fin: (flags & flagFin) !== 0 };
      case types.reset:
        return { kind: 'reset', streamId: wordAt(body, 0) & 0x7fff_ffff, status: wordAt(body, 4) };
      case types.ping:
        return { kind: 'ping', id: wordAt(body, 0) };
      case types.goAway:
        return { kind: 'go-away' };
      default:
        // Frames of type SETTINGS, HEADERS and WINDOW_UPDATE are ignored.
        return 'silent';
    }
  }
}

function wordAt(body: Buffer, at: number): number {
  if (body.length < at + 4) throw malformed(`a control frame of ${body.length} bytes is too short`);
  return body.readUInt32BE(at);
}

function malformed(why: string): KubelingError {
  return new KubelingError('SPDY_MALFORMED', `Cannot read the stream of the container runtime: ${why}`);
}

/**
 * The header blocks of SPDY/3: one zlib stream per connection and direction, with a preset
 * dictionary. Sent blocks are stored, not compressed: a few short headers need no compression, and
 * every zlib reader accepts stored blocks.
 */

/** The zlib header: method deflate, the largest window, and a preset dictionary. */
const zlibHeader = [0x78, 0xf9];
/** The Adler-32 checksum of the SPDY/3 dictionary. */
const dictionaryId = 0xe3c6a7c2;

const maxStoredBytes = 0xffff;

export type StreamHeaders = Readonly<Record<string, string>>;

/**
 * Encodes the header blocks of one connection. They must be sent in the order in which they were
 * encoded.
 */
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
    for (let at = 0; at < plain.length; at += maxStoredBytes) {
      parts.push(...stored(plain.subarray(at, at + maxStoredBytes)));
    }
    // An empty deflate block at the end of the compressed headers makes every decompressor output
    // them; some would wait for the next block otherwise.
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

/**
 * Encodes one stored deflate block that is not the last one: a length, its complement and the
 * bytes.
 */
function stored(bytes: Buffer): readonly Buffer[] {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(bytes.length, 1);
  head.writeUInt16LE(~bytes.length & 0xffff, 3);
  return [head, bytes];
}
