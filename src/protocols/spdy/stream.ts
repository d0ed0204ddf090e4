import { Duplex } from 'node:stream';

export type Done = (error?: Error | null) => void;

/** The functions of the connection that a stream uses. */
export interface SpdyStreamCarrier {
  /** Sends bytes of a stream; calls back when the socket has accepted them. */
  send(streamId: number, bytes: Buffer, end: 'fin' | 'more', done: Done): void;
  reset(streamId: number): void;
  /** Called when the reader of the stream can accept more. */
  resume(streamId: number): void;
  remove(streamId: number): void;
}

/**
 * The maximum size of a data frame: longer writes are divided, so that the streams of one
 * connection alternate.
 */
const maxFrameBytes = 64 * 1024;

export type StreamState = 'asked' | 'open' | 'closed';

/** One stream of a SPDY connection. Ending the writable side leaves the readable side open. */
export class SpdyStream extends Duplex {
  readonly id: number;
  readonly #carrier: SpdyStreamCarrier;
  #state: StreamState = 'asked';
  /**
   * Whether the server has ended its side of the stream, or the connection has ended: no more data
   * may be pushed.
   */
  #receivedAll = false;

  constructor(id: number, carrier: SpdyStreamCarrier) {
    super({ allowHalfOpen: true, emitClose: true, autoDestroy: true });
    this.id = id;
    this.#carrier = carrier;
  }

  get state(): StreamState {
    return this.#state;
  }

  get receivedAll(): boolean {
    return this.#receivedAll;
  }

  /** Records that the server has accepted the stream. */
  accepted(): void {
    if (this.#state === 'asked') this.#state = 'open';
  }

  /** Delivers data to the reader; returns whether it accepts more now. */
  received(bytes: Buffer): boolean {
    return this.#receivedAll || bytes.length === 0 || this.push(bytes);
  }

  receivedEnd(): void {
    if (this.#receivedAll) return;
    this.#receivedAll = true;
    this.push(null);
  }

  /**
   * Ends both directions after a reset by the server: the reader receives the end; further writes
   * are discarded.
   */
  receivedReset(): void {
    this.#state = 'closed';
    this.receivedEnd();
    if (!this.writableEnded) this.end();
  }

  override _read(): void {
    this.#carrier.resume(this.id);
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: Done): void {
    const first = chunk.subarray(0, maxFrameBytes);
    const rest = chunk.subarray(maxFrameBytes);
    this.#send(first, 'more', (error) => {
      if (error || rest.length === 0) done(error);
      else this._write(rest, encoding, done);
    });
  }

  override _final(done: Done): void {
    this.#send(Buffer.alloc(0), 'fin', done);
  }

  override _destroy(error: Error | null, done: Done): void {
    // A stream that has ended in both directions needs no reset; its connection may already be
    // closed.
    if (this.#state !== 'closed' && !this.#receivedAll) this.#carrier.reset(this.id);
    this.#state = 'closed';
    this.#carrier.remove(this.id);
    done(error);
  }

  #send(bytes: Buffer, end: 'fin' | 'more', done: Done): void {
    if (this.#state === 'closed') done();
    else this.#carrier.send(this.id, bytes, end, done);
  }
}
