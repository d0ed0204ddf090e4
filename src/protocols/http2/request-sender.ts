import type { Writable } from 'node:stream';
import type { ClientStream } from './client-stream.ts';
import { SendWindow } from './flow-control.ts';
import {
  defaultFrameBytes,
  defaultWindowBytes,
  frameFlag,
  frameHeadBytes,
  frameType,
  writeFrameHead,
} from './frames.ts';
import { zeroTableSizeUpdate } from './hpack-encoder.ts';

/** The limit of bytes that wait in the socket: above it no more are written. */
const maxSocketBacklogBytes = 1 << 20;

/**
 * Sends requests as fast as the flow control windows of streams and connection, and the socket,
 * allow.
 */
export class RequestSender {
  readonly #outbox: WriteBuffer;
  readonly #window = new SendWindow(defaultWindowBytes);
  /** Streams whose request body was not sent completely, the oldest first. */
  readonly #unsent = new Set<ClientStream>();
  #sizeUpdateDue = true;

  constructor(outbox: WriteBuffer) {
    this.#outbox = outbox;
  }

  /** Whether the peer reads too slowly: further requests would only be buffered. */
  get isSocketFull(): boolean {
    return this.#outbox.waitingBytes > maxSocketBacklogBytes;
  }

  /**
   * Starts to send the request of a stream to which the number and the send window have been
   * assigned.
   */
  begin(stream: ClientStream): void {
    if (!this.#sendSmall(stream)) {
      this.#sendHead(stream);
      this.#unsent.add(stream);
      this.pump();
    }
  }

  /** Sends no more data of a stream that has ended. */
  forget(stream: ClientStream): void {
    this.#unsent.delete(stream);
  }

  /**
   * Records that the peer changed the size of its HPACK table: the next header block starts with a
   * size update.
   */
  tableChanged(): void {
    this.#sizeUpdateDue = true;
  }

  /** Increases the window of the connection. Throws an Http2Error above the maximum window size. */
  receiveGrant(bytes: number): void {
    this.#window.grow(bytes);
    this.pump();
  }

  /** Sends the body data that windows and socket allow. */
  pump(): void {
    for (const stream of this.#unsent) {
      if (this.#window.left <= 0 || this.isSocketFull) return;
      this.#sendBody(stream);
      if (stream.sentBytes === stream.body.length) this.#unsent.delete(stream);
    }
  }

  /** Sends a small request with both its frames in one write; nearly every request is small. */
  #sendSmall(stream: ClientStream): boolean {
    const { body, id } = stream;
    const head = stream.head.bytes;
    const fits =
      !this.#sizeUpdateDue &&
      head.length <= defaultFrameBytes &&
      body.length <= Math.min(defaultFrameBytes, this.#window.left, stream.sendWindow.left);
    if (!fits) return false;
    const piece = Buffer.allocUnsafe(2 * frameHeadBytes + head.length + body.length);
    let at = writeFrameHead(piece, 0, head.length, frameType.headers, frameFlag.endHeaders, id);
    at += head.copy(piece, at);
    at = writeFrameHead(piece, at, body.length, frameType.data, frameFlag.endStream, id);
    body.copy(piece, at);
    this.#spend(stream, body.length);
    this.#outbox.write(piece);
    return true;
  }

  #sendHead(stream: ClientStream): void {
    const block = this.#sizeUpdateDue
      ? Buffer.concat([zeroTableSizeUpdate, stream.head.bytes])
      : stream.head.bytes;
    this.#sizeUpdateDue = false;
    for (let at = 0; at < block.length; at += defaultFrameBytes) {
      const part = block.subarray(at, at + defaultFrameBytes);
      const isLast = at + part.length === block.length;
      const type = at === 0 ? frameType.headers : frameType.continuation;
      this.#writeFrame(type, isLast ? frameFlag.endHeaders : 0, stream.id, part);
    }
  }

  #sendBody(stream: ClientStream): void {
    const { body, sendWindow } = stream;
    while (stream.sentBytes < body.length && !this.isSocketFull) {
      const room = Math.min(defaultFrameBytes, this.#window.left, sendWindow.left);
      if (room <= 0) return;
      const part = body.subarray(stream.sentBytes, stream.sentBytes + room);
      this.#spend(stream, part.length);
      const isLast = stream.sentBytes === body.length;
      this.#writeFrame(frameType.data, isLast ? frameFlag.endStream : 0, stream.id, part);
    }
  }

  #spend(stream: ClientStream, bytes: number): void {
    this.#window.spend(bytes);
    stream.sendWindow.spend(bytes);
    stream.sentBytes += bytes;
  }

  #writeFrame(type: number, flags: number, streamId: number, payload: Buffer): void {
    const head = Buffer.allocUnsafe(frameHeadBytes);
    writeFrameHead(head, 0, payload.length, type, flags, streamId);
    this.#outbox.write(head);
    this.#outbox.write(payload);
  }
}

/**
 * The total size up to which copying the pieces together is cheaper than writing them individually.
 */
const joinedBytes = 64 << 10;

/** Collects the writes of one turn of the event loop and passes them to the socket together. */
export class WriteBuffer {
  readonly #socket: Writable;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Flushes after all promise callbacks, because they often send the next request. */
  readonly #flushSoon = () => process.nextTick(flush, this);

  constructor(socket: Writable) {
    this.#socket = socket;
  }

  /** The number of bytes that the kernel has not accepted yet. */
  get waitingBytes(): number {
    return this.#bytes + this.#socket.writableLength;
  }

  write(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#pieces.length === 1) queueMicrotask(this.#flushSoon);
  }

  /** Writes now instead of at the end of the event loop turn. */
  flush(): void {
    const pieces = this.#pieces;
    const [first] = pieces;
    if (first === undefined) return;
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = 0;
    if (!this.#socket.writable) return;
    if (pieces.length === 1) this.#socket.write(first);
    else if (bytes <= joinedBytes) this.#socket.write(Buffer.concat(pieces, bytes));
    else this.#writeAll(pieces);
  }

  #writeAll(pieces: readonly Buffer[]): void {
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }
}

function flush(outbox: WriteBuffer): void {
  outbox.flush();
}
