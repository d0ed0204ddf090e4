import { KubelingError, onAbort } from '../../lib/index.ts';
import {
  type ClientConnection,
  type ClientStream,
  type Headers,
  Http2Error,
  type StreamEnd,
  type StreamReader,
} from '../http2/index.ts';
import { GrpcMessageReader } from './frames.ts';
import type { PausableSource } from './message-queue.ts';
import type { RequestHeaders } from './request-headers.ts';
import type { CallOptions } from './service.ts';
import { decodeStatusMessage, GrpcError, grpcCodeOf, grpcCodeOfHttp } from './status.ts';

export interface CallRequest {
  readonly head: RequestHeaders;
  /** The request message with its gRPC frame header. */
  readonly body: Buffer;
  readonly maxReceiveBytes: number;
  readonly onMessage: (message: Buffer, source: PausableSource) => void;
}

/**
 * One gRPC call on a connection: sends the request, delivers response messages, and settles
 * `finished` when the result of the call is known and the abort listener has been removed from the
 * signal. Rejects with GrpcErrors only.
 */
export class Call implements StreamReader {
  readonly finished: Promise<void>;
  readonly #request: CallRequest;
  readonly #stream: ClientStream;
  readonly #reader: GrpcMessageReader;
  #link: Disposable | undefined;
  #settle: (error: GrpcError | undefined) => void = () => {};
  #status: GrpcError | 'ok' | undefined;
  #over = false;

  constructor(connection: ClientConnection, request: CallRequest, options: CallOptions) {
    this.#request = request;
    this.#reader = new GrpcMessageReader(request.maxReceiveBytes);
    this.#stream = openHttp2Stream(connection, request, options, this);
    this.finished = new Promise((resolve, reject) => {
      this.#settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.#link = onAbort(options.signal, () => this.#stop(abortedCall(options.signal)));
  }

  /**
   * Resets the stream when the reader needs no more messages. Does nothing after the end of the
   * call.
   */
  cancel(): void {
    if (!this.#over) this.#stop(new GrpcError('CANCELLED', 'The reader has closed the stream'));
  }

  headers(headers: Headers): void {
    this.#status ??= statusOf(headers);
  }

  data(bytes: Buffer): void {
    try {
      // The message is copied, because the connection reuses its read buffer.
      for (const message of this.#reader.push(Buffer.from(bytes)))
        this.#request.onMessage(message, this.#stream);
    } catch (error) {
      this.#stop(asGrpcError(error, `Cannot read an answer of ${this.#request.head.path}`));
    }
  }

  ended(end: StreamEnd): void {
    this.#finish(this.#outcome(end));
  }

  /** Ends the call without waiting for the peer, which may be unable to receive even the reset. */
  #stop(error: GrpcError): void {
    this.#finish(error);
    this.#stream.reset('CANCEL');
  }

  #finish(error: GrpcError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#link?.[Symbol.dispose]();
    this.#settle(error);
  }

  #outcome(end: StreamEnd): GrpcError | undefined {
    const { path } = this.#request.head;
    if (this.#status instanceof GrpcError) return this.#status;
    if (end.is === 'complete') {
      if (this.#status === undefined) return new GrpcError('INTERNAL', `${path} ended without a status`);
      return this.#reader.hasPartialMessage
        ? new GrpcError('INTERNAL', `${path} ended inside a response message`)
        : undefined;
    }
    const error = end.is === 'reset' ? resetError(end) : end.error;
    if (error !== undefined) return brokenCall(path, error);
    return new GrpcError('UNAVAILABLE', `The connection was closed during ${path}`);
  }
}

function openHttp2Stream(
  connection: ClientConnection,
  { head, body }: CallRequest,
  options: CallOptions,
  reader: StreamReader,
): ClientStream {
  try {
    return connection.open({ head: head.block(options), body }, reader);
  } catch (error) {
    throw asGrpcError(error, `Cannot call ${head.path}`, 'UNAVAILABLE');
  }
}

/**
 * The gRPC status in response headers: in the trailers, or in the headers of a call that failed
 * immediately; undefined if there is none.
 */
function statusOf(headers: Headers): GrpcError | 'ok' | undefined {
  const code = headers.get('grpc-status');
  if (code === '0') return 'ok';
  if (code === undefined) {
    const http = Number(headers.get(':status') ?? 200);
    if (http === 200) return undefined;
    return GrpcError.fromPeer(grpcCodeOfHttp(http), `The peer answered with HTTP status ${http}`);
  }
  return GrpcError.fromPeer(grpcCodeOf(Number(code)), decodeStatusMessage(headers.get('grpc-message') ?? ''));
}

/** The error for a stream reset; undefined for resets that only end the stream. */
function resetError({ reason }: Extract<StreamEnd, { is: 'reset' }>): Http2Error | undefined {
  if (reason === 'NO_ERROR' || reason === 'CANCEL') return undefined;
  return new Http2Error(reason, `Stream closed with error code ${reason}`);
}

function brokenCall(path: string, error: Error): GrpcError {
  if (error instanceof GrpcError) return error;
  const isTooMuch = error instanceof Http2Error && error.reason === 'ENHANCE_YOUR_CALM';
  const code = isTooMuch ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE';
  return new GrpcError(code, `The connection broke during ${path}: ${error.message}`, error);
}

function asGrpcError(error: unknown, what: string, code: 'INTERNAL' | 'UNAVAILABLE' = 'INTERNAL'): GrpcError {
  return error instanceof GrpcError ? error : new GrpcError(code, `${what}: ${String(error)}`, error);
}

/**
 * The result of a call whose signal was aborted: DEADLINE_EXCEEDED if the signal was aborted by a
 * timeout, otherwise CANCELLED.
 */
export function abortedCall(signal: AbortSignal): GrpcError {
  const reason: unknown = signal.reason;
  const late =
    (reason instanceof KubelingError && reason.kind === 'DeadlineExceeded') ||
    (reason instanceof DOMException && reason.name === 'TimeoutError');
  return new GrpcError(late ? 'DEADLINE_EXCEEDED' : 'CANCELLED', 'The call was cancelled', reason);
}
