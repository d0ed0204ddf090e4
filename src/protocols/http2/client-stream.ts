import { ReceiveWindow, SendWindow } from './flow-control.ts';
import { Http2Error, type Http2Reason } from './frames.ts';
import type { Headers } from './hpack-decoder.ts';
import type { HeaderBlock } from './hpack-encoder.ts';

/** How a stream ended, unless it was reset locally. */
export type StreamEnd =
  /** The response is complete. */
  | { readonly is: 'complete' }
  | { readonly is: 'reset'; readonly reason: Http2Reason }
  /** The connection ended; without an error if the peer just closed it. */
  | { readonly is: 'broken'; readonly error: Error | undefined };

/** Receives the response in pieces. Must not throw. */
export interface StreamReader {
  /** The response headers, and the trailers if there are any. */
  headers(headers: Headers): void;
  /** The bytes are valid only during the call: copy what is needed later. */
  data(bytes: Buffer): void;
  /** Called once, as the last call; never after `reset`. */
  ended(end: StreamEnd): void;
}

/** What a stream needs of its connection. */
export interface Http2StreamCarrier {
  /** Sends a window update. */
  grant(stream: ClientStream, bytes: number): void;
  /** The stream is over: with a reason, a RST_STREAM is sent. */
  release(stream: ClientStream, reason: Http2Reason | undefined): void;
}

const noWindow = new SendWindow(0);

/**
 * One request and its answer.
 *
 *   waiting ──> asked ──(head)──> answering ──(end)──> over
 *      └───────────┴─────(reset, broken)────┴───────────┘
 */
export class ClientStream {
  readonly head: HeaderBlock;
  readonly body: Buffer;
  /** How much of the body was sent. */
  sentBytes = 0;
  /** The send window; 0 before the stream begins. */
  sendWindow = noWindow;
  readonly #reader: StreamReader;
  readonly #carrier: Http2StreamCarrier;
  readonly #receiveWindow: ReceiveWindow;
  #id = 0;
  #state: 'waiting' | 'asked' | 'answering' | 'over' = 'waiting';
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

  /** 0 while the request waits. */
  get id(): number {
    return this.#id;
  }

  begin(id: number, sendWindowBytes: number): void {
    this.#id = id;
    this.#state = 'asked';
    this.sendWindow = new SendWindow(sendWindowBytes);
  }

  /** The peer may use the granted window, which is bounded, and gets no more until `resume`. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#grant();
  }

  /** Ends the stream without further callbacks. Does nothing once it is over. */
  reset(reason: Http2Reason): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#carrier.release(this, reason);
  }

  receiveHeaders(headers: Headers | 'too-large', end: 'end' | 'more'): void {
    if (this.#state === 'over') return;
    if (headers === 'too-large') {
      this.#protocolError('ENHANCE_YOUR_CALM', 'its headers are too large');
      return;
    }
    const fault = this.#faultOf(headers, end);
    if (fault !== undefined) this.#protocolError('PROTOCOL_ERROR', fault);
    else if (this.#state === 'answering' || !isInterim(headers)) {
      this.#state = 'answering';
      this.#reader.headers(headers);
      if (end === 'end') this.#complete();
    }
  }

  /**
   * `frameBytes` includes padding, as the window does. Throws an Http2Error if the window is
   * exceeded.
   */
  receiveData(bytes: Buffer, frameBytes: number, end: 'end' | 'more'): void {
    if (this.#state === 'over') return;
    if (this.#state !== 'answering') {
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
      if (bytes === 0) throw new Http2Error('PROTOCOL_ERROR', 'the peer granted nothing');
      this.sendWindow.grow(bytes);
    } catch (error) {
      if (!(error instanceof Http2Error)) throw error;
      this.#protocolError(error.reason, error.message);
    }
  }

  /** The connection is closed, or cannot carry this stream. */
  fail(error: Error | undefined): void {
    this.#finish({ is: 'broken', error }, undefined);
  }

  /** Why headers are not allowed now. */
  #faultOf(headers: Headers, end: 'end' | 'more'): string | undefined {
    if (this.#state === 'answering') {
      return end === 'more' ? 'headers came in the middle of the answer' : undefined;
    }
    if (!/^[1-9]\d\d$/.test(headers.get(':status') ?? '')) return 'it has no HTTP status';
    return isInterim(headers) && end === 'end' ? 'it ended before it began' : undefined;
  }

  #complete(): void {
    // The peer responded without reading the complete request: a reset makes it expect no more
    // data.
    const isSent = this.sentBytes === this.body.length;
    this.#finish({ is: 'complete' }, isSent ? undefined : 'CANCEL');
  }

  #protocolError(reason: Http2Reason, why: string): void {
    const error = new Http2Error(reason, `Cannot take the answer: ${why}`);
    this.#finish({ is: 'broken', error }, reason);
  }

  #finish(end: StreamEnd, resetReason: Http2Reason | undefined): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#carrier.release(this, resetReason);
    this.#reader.ended(end);
  }

  #grant(): void {
    if (this.#isPaused || this.#state !== 'answering') return;
    const bytes = this.#receiveWindow.grant();
    if (bytes > 0) this.#carrier.grant(this, bytes);
  }
}

/** Interim headers, which the response follows. */
function isInterim(headers: Headers): boolean {
  return headers.get(':status')?.startsWith('1') ?? false;
}
