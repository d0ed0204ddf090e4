import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { asError, KubelingError } from '../../lib/index.ts';
import {
  dataHead,
  HeaderEncoder,
  pingFrame,
  resetStatus,
  type SpdyFrame,
  SpdyFrameReader,
  type StreamHeaders,
  spdyGoAwayFrame,
  spdyResetFrame,
  synStreamFrame,
} from './frames.ts';
import { type Done, SpdyStream, type SpdyStreamCarrier } from './stream.ts';

/**
 * The client side of a SPDY/3.1 connection to a container runtime. Runtimes have no flow control
 * per stream, so a stream with a slow reader blocks the complete connection: use one connection per
 * session. Owns its socket.
 */
export class SpdyConnection implements Disposable {
  readonly #socket: Duplex;
  readonly #reader = new SpdyFrameReader();
  readonly #headers = new HeaderEncoder();
  readonly #streams = new Map<number, SpdyStream>();
  /** The streams whose buffers are full; while there is one the socket is not read. */
  readonly #full = new Set<number>();
  readonly #carrier: SpdyStreamCarrier;
  #nextId = 1;
  #end: Error | undefined;

  /** `head` contains bytes that arrived with the response to the upgrade. */
  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    this.#carrier = {
      send: (id, bytes, end, done) => this.#send(id, bytes, end, done),
      reset: (id) => this.#write(spdyResetFrame(id, resetStatus.cancel)),
      resume: (id) => this.#resume(id),
      remove: (id) => this.#remove(id),
    };
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('error', (error) => this.#ended(error));
    socket.on('end', () => this.#ended(brokenConnection()));
    socket.on('close', () => this.#ended(brokenConnection()));
    if (head.length > 0) this.#received(head);
  }

  /**
   * Opens a stream, which may be written to immediately; the server may still reject it, which
   * fails the stream.
   */
  open(headers: StreamHeaders): SpdyStream {
    if (this.#end !== undefined) throw this.#end;
    const id = this.#nextId;
    this.#nextId += 2;
    const stream = new SpdyStream(id, this.#carrier);
    this.#streams.set(id, stream);
    // Without this listener the error of an unused stream would end the process; users of the
    // stream receive the error from their reads and writes.
    stream.on('error', () => {});
    this.#write(synStreamFrame(id, this.#headers.encode(headers)));
    return stream;
  }

  /** Sends GOAWAY and ends every stream. Closing the connection again does nothing. */
  close(): void {
    if (this.#end !== undefined) return;
    this.#write(spdyGoAwayFrame(0));
    this.#ended(new KubelingError('CANCELLED', 'The connection to the container runtime was closed'));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #received(chunk: Uint8Array): void {
    try {
      for (const piece of this.#reader.push(chunk)) this.#handle(piece);
    } catch (error) {
      this.#ended(asError(error));
    }
  }

  #handle(piece: SpdyFrame): void {
    switch (piece.kind) {
      case 'data':
        this.#receivedData(piece.streamId, piece.bytes, piece.fin ? 'fin' : 'more');
        break;
      case 'reply':
        this.#streams.get(piece.streamId)?.accepted();
        if (piece.fin) this.#streams.get(piece.streamId)?.receivedEnd();
        break;
      case 'opened':
        // A stream that the server opens is rejected, because runtimes open none.
        this.#write(spdyResetFrame(piece.streamId, resetStatus.refused));
        break;
      case 'reset':
        this.#receivedReset(piece.streamId, piece.status);
        break;
      case 'ping':
        // Only pings of the server, which have even IDs, are answered; this client sends none.
        if (piece.id % 2 === 0) this.#write(pingFrame(piece.id));
        break;
      case 'go-away':
        break;
    }
  }

  #receivedData(id: number, bytes: Buffer, end: 'fin' | 'more'): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.accepted();
    if (!stream.received(bytes)) {
      this.#full.add(id);
      this.#socket.pause();
    }
    if (end === 'fin') stream.receivedEnd();
  }

  #receivedReset(id: number, status: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (stream.state === 'asked') {
      stream.receivedReset();
      stream.destroy(
        new KubelingError('SPDY_REFUSED', `The container runtime refused a stream with status ${status}`),
      );
    } else {
      stream.receivedReset();
    }
  }

  #resume(id: number): void {
    if (!this.#full.delete(id) || this.#full.size > 0 || this.#end !== undefined) return;
    this.#socket.resume();
  }

  #remove(id: number): void {
    this.#resume(id);
    this.#streams.delete(id);
  }

  #send(id: number, bytes: Buffer, end: 'fin' | 'more', done: Done): void {
    if (this.#end !== undefined) {
      done(this.#end);
      return;
    }
    this.#socket.cork();
    this.#socket.write(dataHead(id, bytes.length, end), bytes.length === 0 ? done : undefined);
    if (bytes.length > 0) this.#socket.write(bytes, done);
    this.#socket.uncork();
  }

  #write(frame: Buffer): void {
    if (this.#end === undefined && this.#socket.writable) this.#socket.write(frame);
  }

  #ended(why: Error): void {
    if (this.#end !== undefined) return;
    this.#end = why;
    closeSocket(this.#socket);
    for (const stream of [...this.#streams.values()]) this.#fail(stream, why);
  }

  /**
   * Fails a stream unless it was received completely; a completely received stream can still be
   * read.
   */
  #fail(stream: SpdyStream, why: Error): void {
    if (stream.receivedAll) stream.receivedReset();
    else stream.destroy(why);
  }
}

/**
 * The socket is reset, because a peer that does not read would receive GOAWAY only after all unread
 * data.
 */
function closeSocket(socket: Duplex): void {
  const canReset =
    socket instanceof Socket && !(socket instanceof TLSSocket) && socket.remotePort !== undefined;
  if (canReset && socket.writableLength > 0) socket.resetAndDestroy();
  else socket.destroy();
}

function brokenConnection(): KubelingError {
  return new KubelingError('STREAM_BROKEN', 'The connection to the container runtime broke');
}
