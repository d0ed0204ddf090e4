import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { onAbort } from '../abort.ts';
import { KubelingError } from '../errors.ts';
import { FrameReader } from './frames.ts';
import type { CallOptions } from './service.ts';
import { decodeStatusMessage, GrpcError, grpcCodeOf, grpcCodeOfHttp } from './status.ts';
import { formatTimeout } from './timeout.ts';

export interface CallRequest {
  readonly path: string;
  /** The request's message, framed. */
  readonly body: Buffer;
  readonly maxReceiveBytes: number;
  readonly onMessage: (message: Buffer, stream: ClientHttp2Stream) => void;
}

/**
 * One call on a session: the request is sent, answers are handed over, and `finished` settles as soon as the end is
 * known, with no listener left on the signal. It rejects with GrpcErrors only.
 */
export class Call {
  readonly finished: Promise<void>;
  readonly #request: CallRequest;
  readonly #stream: ClientHttp2Stream;
  readonly #reader: FrameReader;
  #link: Disposable | undefined;
  #settle: (error: GrpcError | undefined) => void = () => {};
  #status: GrpcError | 'ok' | undefined;
  #broken: Error | undefined;
  /** All answers were read; without this an OK may be the status of a call cut short on the way. */
  #ended = false;
  #over = false;

  constructor(session: ClientHttp2Session, request: CallRequest, options: CallOptions) {
    this.#request = request;
    this.#reader = new FrameReader(request.maxReceiveBytes);
    this.#stream = openStream(session, request.path, options);
    this.finished = new Promise((resolve, reject) => {
      this.#settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    this.#listen(session);
    this.#link = onAbort(options.signal, () => this.#stop(abandoned(options.signal)));
    this.#stream.end(request.body);
  }

  /** Tells the other side that nobody wants the rest. Does nothing once the call is over. */
  leave(): void {
    if (!this.#over) this.#stop(new GrpcError('CANCELLED', 'The reader left'));
  }

  #listen(session: ClientHttp2Session): void {
    const stream = this.#stream;
    const readStatus = (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
      this.#status ??= statusOf(headers);
    };
    stream.on('response', readStatus);
    stream.on('trailers', readStatus);
    stream.on('data', (chunk: Buffer) => this.#receive(chunk));
    stream.on('end', () => {
      this.#ended = true;
    });
    stream.on('error', (error: NodeJS.ErrnoException) => {
      this.#broken = error;
      // A session has a billion streams; the next call needs a new one.
      if (error.code === 'ERR_HTTP2_OUT_OF_STREAMS') session.close();
    });
    stream.on('close', () => this.#finish(this.#outcome()));
  }

  #receive(chunk: Buffer): void {
    if (this.#over) return;
    try {
      for (const message of this.#reader.push(chunk)) this.#request.onMessage(message, this.#stream);
    } catch (error) {
      this.#stop(asGrpcError(error, `Cannot read an answer of ${this.#request.path}`));
    }
  }

  /** The call ends here and now: the other side may be unable to take even the message that it has ended. */
  #stop(error: GrpcError): void {
    this.#finish(error);
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#stream.resume();
  }

  #finish(error: GrpcError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#link?.[Symbol.dispose]();
    this.#settle(error);
  }

  #outcome(): GrpcError | undefined {
    const { path } = this.#request;
    if (this.#status instanceof GrpcError) return this.#status;
    if (this.#status === 'ok' && this.#ended) {
      return this.#reader.partial ? new GrpcError('INTERNAL', `${path} ended inside an answer`) : undefined;
    }
    if (this.#broken !== undefined) return brokenCall(path, this.#broken, this.#stream.rstCode);
    if (this.#ended && this.#stream.rstCode === constants.NGHTTP2_NO_ERROR) {
      return new GrpcError('INTERNAL', `${path} ended without a status`);
    }
    return new GrpcError('UNAVAILABLE', `The connection was closed during ${path}`);
  }
}

function openStream(session: ClientHttp2Session, path: string, options: CallOptions): ClientHttp2Stream {
  try {
    return session.request(requestHeaders(path, options));
  } catch (error) {
    throw asGrpcError(error, `Cannot call ${path}`, 'UNAVAILABLE');
  }
}

function requestHeaders(path: string, { timeoutMs, metadata }: CallOptions): Record<string, string> {
  const headers: Record<string, string> = {
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': metadata?.['user-agent'] ?? 'kubeling',
  };
  if (timeoutMs !== undefined) headers['grpc-timeout'] = formatTimeout(timeoutMs);
  return metadata === undefined ? headers : { ...metadata, ...headers };
}

/** The call's status if these headers carry one: the trailers, or headers of a call that failed at once. */
function statusOf(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): GrpcError | 'ok' | undefined {
  const http = headers[':status'];
  const code = headers['grpc-status'];
  if (code === '0') return 'ok';
  if (code === undefined) {
    if (http === undefined || http === 200) return undefined;
    return new GrpcError(grpcCodeOfHttp(http), `The other side answered with HTTP status ${http}`);
  }
  return new GrpcError(grpcCodeOf(Number(code)), decodeStatusMessage(String(headers['grpc-message'] ?? '')));
}

function brokenCall(path: string, error: Error, rstCode: number | undefined): GrpcError {
  if (error instanceof GrpcError) return error;
  const code = rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE';
  return new GrpcError(code, `The connection broke during ${path}: ${error.message}`, error);
}

function asGrpcError(error: unknown, what: string, code: 'INTERNAL' | 'UNAVAILABLE' = 'INTERNAL'): GrpcError {
  return error instanceof GrpcError ? error : new GrpcError(code, `${what}: ${String(error)}`, error);
}

/** How a call ends whose signal was aborted: late if that is the reason given, else cancelled. */
export function abandoned(signal: AbortSignal): GrpcError {
  const reason: unknown = signal.reason;
  const late =
    (reason instanceof KubelingError && reason.kind === 'DeadlineExceeded') ||
    (reason instanceof DOMException && reason.name === 'TimeoutError');
  return new GrpcError(late ? 'DEADLINE_EXCEEDED' : 'CANCELLED', 'The call was given up', reason);
}
