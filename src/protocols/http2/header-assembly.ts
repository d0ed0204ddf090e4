import { frameFlag, frameType, Http2Error } from './frames.ts';

export interface AssembledBlock {
  readonly streamId: number;
  readonly block: Buffer;
  readonly end: 'end' | 'more';
}

/**
 * The maximum number of frames of a header block, more than any real header block needs: an endless
 * sequence of empty frames is rejected.
 */
const maxFrames = 256;

/**
 * Joins the frames of a header block, between which no other frame is allowed, up to the size
 * limit.
 */
export class HeaderAssembly {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;
  #open: { readonly streamId: number; readonly end: 'end' | 'more' } | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Throws an Http2Error if the frame must not follow the previous one: only CONTINUATION frames
   * may follow the first frame of an incomplete header block.
   */
  check(type: number, streamId: number): void {
    const open = this.#open;
    if (open === undefined) {
      if (type !== frameType.continuation) return;
      throw new Http2Error('PROTOCOL_ERROR', `The peer sent CONTINUATION without HEADERS`);
    }
    if (type !== frameType.continuation || streamId !== open.streamId) {
      throw new Http2Error(
        'PROTOCOL_ERROR',
        `The peer sent another frame between the header frames of stream ${open.streamId}`,
      );
    }
  }

  /** Adds the payload of a HEADERS frame; returns the header block if it is complete. */
  begin(
    flags: number,
    streamId: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): AssembledBlock | undefined {
    this.#open = { streamId, end: (flags & frameFlag.endStream) === 0 ? 'more' : 'end' };
    const skipped = (flags & frameFlag.priority) === 0 ? 0 : 5;
    const [from, to] = unpadded(flags, bytes, start, end, skipped);
    return this.#add(flags, bytes.subarray(from, to));
  }

  /** Adds the payload of a CONTINUATION frame that was already checked. */
  proceed(flags: number, bytes: Buffer, start: number, end: number): AssembledBlock | undefined {
    return this.#add(flags, bytes.subarray(start, end));
  }

  #add(flags: number, part: Buffer): AssembledBlock | undefined {
    const isLast = (flags & frameFlag.endHeaders) !== 0;
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes || this.#parts.length >= maxFrames) {
      throw new Http2Error(
        'ENHANCE_YOUR_CALM',
        `The peer sent headers of more than ${this.#maxBytes} bytes, or in more than ${maxFrames} frames`,
      );
    }
    if (!isLast) {
      // The bytes are copied, because they are valid only until the next read.
      this.#parts.push(Buffer.from(part));
      return undefined;
    }
    const block = this.#parts.length === 0 ? part : Buffer.concat([...this.#parts, part]);
    const open = this.#open;
    this.#parts = [];
    this.#bytes = 0;
    this.#open = undefined;
    return open && { streamId: open.streamId, end: open.end, block };
  }
}

/**
 * Returns where the content of a frame's payload starts and ends: after the pad length and the
 * skipped fields, before the padding.
 */
export function unpadded(
  flags: number,
  bytes: Buffer,
  start: number,
  end: number,
  skipped: number,
): readonly [start: number, end: number] {
  const isPadded = (flags & frameFlag.padded) !== 0;
  const from = start + (isPadded ? 1 : 0) + skipped;
  const to = end - (isPadded ? (bytes[start] ?? 0) : 0);
  if (from > end || to < from) {
    throw new Http2Error('PROTOCOL_ERROR', 'The peer sent a frame whose padding is longer than its payload');
  }
  return [from, to];
}
