import { ReceiveWindow, SendWindow } from './flow-control.ts';
import { Http2Error, type Http2Reason } from './frames.ts';
import type { Headers } from './hpack-decoder.ts';
import type { HeaderBlock } from './hpack-encoder.ts';

/** How a stream ended, unless it was reset by this client. */
export type StreamEnd =
  /** The response was received completely. */
  | { readonly is: 'complete' }
  | { readonly is: 'reset'; readonly reason: Http2Reason }
  /** The connection has ended; without an error if the peer closed it normally. */
  | { readonly is: 'broken'; readonly error: Error | undefined };

/** Receives the response of a stream in pieces. Must not throw. */
export interface StreamReader {
  /** Called with the response headers, and with the trailers if there are any. */
  headers(headers: Headers): void;
  /** Called with body bytes, which are valid only during the call: copy what is needed later. */
  data(bytes: Buffer): void;
  /** Called when the stream has ended. Called once, as the last call; never after `reset`. */
  ended(end: StreamEnd): void;
}

/** The functions of the connection that a stream uses. */
export interface Http2StreamCarrier {
  /** Sends a window update. */
  grant(stream: ClientStream, bytes: number): void;
  /** Removes a stream that has ended; with a reason, RST_STREAM is sent. */
  release(stream: ClientStream, reason: Http2Reason | undefined): void;
}

const noWindow = new SendWindow(0);

/**
 * One request and its answer.
 *
 *   waiting ──> sent ──(head)──> responding ──(end)──> ended
 *      └──────────┴──────(reset, broken)────┴─────────────┘
 */
export class ClientStream {
  readonly head: HeaderBlock;
  readonly body: Buffer;
  /** The number of body bytes that were sent. */
  sentBytes = 0;
  /** The send window of the stream; 0 before the request is sent. */
  sendWindow = noWindow;
  readonly #reader: StreamReader;
  readonly #carrier: Http2StreamCarrier;
  readonly #receiveWindow: ReceiveWindow;
  #id = 0;
  #state: 'waiting' | 'sent' | 'responding' | 'ended' = 'waiting';
  #isPaused = false;

  constructor(
    request: { readonly head: HeaderBlock; readonly body: Buffer },
    reader: StreamReader,
    carrier: Http2StreamCarrier,
    receiveWindowBytes: number,
  ) {
    this.head = request.head;
    this.body = request.body;
    this.#reader = reader;
    this.#carrier = carrier;
    this.#receiveWindow = new ReceiveWindow(receiveWindowBytes);
  }

  /** The stream number; 0 while the request waits. */
  get id(): number {
    return this.#id;
  }

  begin(id: number, sendWindowBytes: number): void {
    this.#id = id;
    this.#state = 'sent';
    this.sendWindow = new SendWindow(sendWindowBytes);
  }

  /**
   * Pauses the peer: it may still send as much as the granted window allows, but receives no window
   * updates until `resume`.
   */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#grant();
  }

  /** Ends the stream without further callbacks. Does nothing when it has already ended. */
  reset(reason: Http2Reason): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#carrier.release(this, reason);
  }

  receiveHeaders(headers: Headers | 'too-large', end: 'end' | 'more'): void {
    if (this.#state === 'ended') return;
    if (headers === 'too-large') {
      this.#protocolError('ENHANCE_YOUR_CALM', 'its headers are too large');
      return;
    }
    const fault = this.#faultOf(headers, end);
    if (fault !== undefined) this.#protocolError('PROTOCOL_ERROR', fault);
    else if (this.#state === 'responding' || !isInterim(headers)) {
      this.#state = 'responding';
      this.#reader.headers(headers);
      if (end === 'end') this.#complete();
    }
  }

  /**
   * Delivers body bytes. `frameBytes` includes the padding, which counts towards the window, too.
   * Throws an Http2Error if the window is exceeded.
   */
  receiveData(bytes: Buffer, frameBytes: number, end: 'end' | 'more'): void {
    if (this.#state === 'ended') return;
    if (this.#state !== 'responding') {
      this.#protocolError('PROTOCOL_ERROR', 'data came before its head');
      return;
    }
    this.#receiveWindow.receive(frameBytes);
    if (bytes.length > 0) this.#reader.data(bytes);
    if (end === 'end') this.#complete();
    else this.#grant();
  }

  receiveReset(reason: Http2Reason): void {
    this.#finish({ is: 'reset', reason }, undefined);
  }

  receiveGrant(bytes: number): void {
    try {
      if (bytes === 0) throw new Http2Error('PROTOCOL_ERROR', 'the peer sent a window update of zero bytes');
      this.sendWindow.grow(bytes);
    } catch (error) {
      if (!(error instanceof Http2Error)) throw error;
      this.#protocolError(error.reason, error.message);
    }
  }

  /** Fails the stream because its connection is closed or cannot process it. */
  fail(error: Error | undefined): void {
    this.#finish({ is: 'broken', error }, undefined);
  }

  /** Why headers are not allowed in the current state; undefined if they are. */
  #faultOf(headers: Headers, end: 'end' | 'more'): string | undefined {
    if (this.#state === 'responding') {
      return end === 'more' ? 'it has further headers that do not end the stream' : undefined;
    }
    if (!/^[1-9]\d\d$/.test(headers.get(':status') ?? '')) return 'it has no HTTP status';
    return isInterim(headers) && end === 'end' ? 'it ends after interim headers' : undefined;
  }

  #complete(): void {
    // The peer responded before it read the complete request: a reset informs it that no more data
    // follows.
    const isSent = this.sentBytes === this.body.length;
    this.#finish({ is: 'complete' }, isSent ? undefined : 'CANCEL');
  }

  #protocolError(reason: Http2Reason, why: string): void {
    const error = new Http2Error(reason, `Cannot accept the response: ${why}`);
    this.#finish({ is: 'broken', error }, reason);
  }

  #finish(end: StreamEnd, resetReason: Http2Reason | undefined): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#carrier.release(this, resetReason);
    this.#reader.ended(end);
  }

  #grant(): void {
    if (this.#isPaused || this.#state !== 'responding') return;
    const bytes = this.#receiveWindow.grant();
    if (bytes > 0) this.#carrier.grant(this, bytes);
  }
}

/** Interim headers (1xx), which the response follows. */
function isInterim(headers: Headers): boolean {
  return headers.get(':status')?.startsWith('1') ?? false;
}
