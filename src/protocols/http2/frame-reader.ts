import { defaultFrameBytes, frameHeadBytes, frameType, Http2Error } from './frames.ts';

/** Handles one frame; its payload is `bytes` from `start` to `end`, valid only during the call. */
export type FrameHandler = (
  type: number,
  flags: number,
  streamId: number,
  bytes: Buffer,
  start: number,
  end: number,
) => void;

/** Divides received bytes into frames, and buffers at most one of them. */
export class Http2FrameReader {
  readonly #handle: FrameHandler;
  /** The buffer of an incomplete frame; allocated when first needed. */
  #partial: Buffer | undefined;
  #partialBytes = 0;
  #isFirst = true;

  constructor(handle: FrameHandler) {
    this.#handle = handle;
  }

  /**
   * Reads a chunk. Throws an Http2Error for an invalid frame, and errors of the handler; no further
   * bytes can be read after that.
   */
  push(chunk: Buffer): void {
    let at = this.#completePartial(chunk);
    while (chunk.length - at >= frameHeadBytes) {
      const end = at + this.#frameBytes(chunk, at);
      if (end > chunk.length) break;
      this.#deliver(chunk, at, end);
      at = end;
    }
    if (at < chunk.length) this.#bufferPartial(chunk, at, chunk.length);
  }

  /** Completes the buffered frame; returns the number of bytes of the chunk that were used. */
  #completePartial(chunk: Buffer): number {
    if (this.#partialBytes === 0) return 0;
    let at = 0;
    if (this.#partialBytes < frameHeadBytes) {
      at = Math.min(frameHeadBytes - this.#partialBytes, chunk.length);
      this.#bufferPartial(chunk, 0, at);
    }
    const held = this.#partial;
    if (held === undefined || this.#partialBytes < frameHeadBytes) return at;
    const needed = this.#frameBytes(held, 0);
    const end = Math.min(at + needed - this.#partialBytes, chunk.length);
    this.#bufferPartial(chunk, at, end);
    if (this.#partialBytes === needed) {
      this.#partialBytes = 0;
      this.#deliver(held, 0, needed);
    }
    return end;
  }

  #bufferPartial(chunk: Buffer, start: number, end: number): void {
    this.#partial ??= Buffer.allocUnsafeSlow(frameHeadBytes + defaultFrameBytes);
    this.#partialBytes += chunk.copy(this.#partial, this.#partialBytes, start, end);
  }

  /** The length of the frame, which is checked before it is buffered. */
  #frameBytes(bytes: Buffer, at: number): number {
    const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    if (this.#isFirst && bytes[at + 3] !== frameType.settings) {
      const text = JSON.stringify(bytes.toString('latin1', at, at + frameHeadBytes));
      throw new Http2Error('PROTOCOL_ERROR', `The peer does not use HTTP/2: its first bytes are ${text}`);
    }
    if (length > defaultFrameBytes) {
      throw new Http2Error(
        'FRAME_SIZE_ERROR',
        `The peer sent a frame of ${length} bytes, more than ${defaultFrameBytes}`,
      );
    }
    return frameHeadBytes + length;
  }

  #deliver(bytes: Buffer, at: number, end: number): void {
    this.#isFirst = false;
    const streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    this.#handle(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, streamId, bytes, at + frameHeadBytes, end);
  }
}
