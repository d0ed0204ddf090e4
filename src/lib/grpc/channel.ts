import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import { onAbort } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { KubelingError } from '../errors.ts';
import type { Random } from '../random.ts';
import { Connection } from './connection.ts';
import { FrameReader, frame } from './frames.ts';
import type { CallOptions, MethodType, ServiceClient, ServiceType } from './service.ts';
import { decodeStatusMessage, GrpcError, grpcCodeOf, grpcCodeOfHttp } from './status.ts';

export interface GrpcChannelOptions {
  /** `unix:///path` or `host:port`. */
  readonly target: string;
  readonly clock: Clock;
  readonly random: Random;
  /** The largest message taken from the other side. */
  readonly maxReceiveBytes?: number;
  readonly baseBackoffMs?: number;
  readonly maxBackoffMs?: number;
  readonly connectTimeoutMs?: number;
}

/** How many answers a stream keeps for a reader that is busy before it stops taking more from the wire. */
const streamHighWater = 64;

/** A gRPC client over one HTTP/2 connection: unary calls and server streams, no compression. */
export class GrpcChannel implements Disposable {
  readonly #connection: Connection;
  readonly #maxReceiveBytes: number;

  constructor(options: GrpcChannelOptions) {
    this.#maxReceiveBytes = options.maxReceiveBytes ?? 16 << 20;
    this.#connection = new Connection({
      target: options.target,
      clock: options.clock,
      random: options.random,
      baseBackoffMs: options.baseBackoffMs ?? 100,
      maxBackoffMs: options.maxBackoffMs ?? 3_000,
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    });
  }

  /** A client of one service; many may share the channel. */
  client<Methods>(service: ServiceType<Methods>): ServiceClient<Methods> {
    const calls: Record<string, unknown> = {};
    for (const [name, method] of Object.entries<MethodType>(service.methods)) {
      const path = `/${service.fullName}/${method.name}`;
      calls[name] =
        method.kind === 'unary'
          ? (request: never, options: CallOptions) => this.#unary(path, method, request, options)
          : (request: never, options: CallOptions) => this.#stream(path, method, request, options);
    }
    return calls as ServiceClient<Methods>;
  }

  /** Ends the connection and every call on it. */
  close(): void {
    this.#connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #unary(path: string, method: MethodType, request: never, options: CallOptions): Promise<unknown> {
    const body = frame(method.request.encode(request));
    const session = await this.#session(options);
    const messages: Buffer[] = [];
    await exchange(session, path, body, options, this.#maxReceiveBytes, (message) => {
      messages.push(message);
    });
    const [answer] = messages;
    if (answer === undefined || messages.length > 1) {
      throw new GrpcError('INTERNAL', `${path} gave ${messages.length} answers instead of one`);
    }
    return decode(method, answer);
  }

  async *#stream(
    path: string,
    method: MethodType,
    request: never,
    options: CallOptions,
  ): AsyncGenerator<unknown> {
    const body = frame(method.request.encode(request));
    const session = await this.#session(options);
    const controller = new AbortController();
    const inbox = new Inbox();
    using _link = onAbort(options.signal, (reason) => controller.abort(reason));
    const finished = exchange(
      session,
      path,
      body,
      { ...options, signal: controller.signal },
      this.#maxReceiveBytes,
      (message, stream) => inbox.put(message, stream),
    );
    finished.then(
      () => inbox.end(undefined),
      (error) => inbox.end(error),
    );
    try {
      for (let message = await inbox.take(); message !== undefined; message = await inbox.take()) {
        yield decode(method, message);
      }
    } finally {
      controller.abort(new GrpcError('CANCELLED', 'The reader left'));
    }
  }

  async #session({ signal }: CallOptions): Promise<ClientHttp2Session> {
    if (signal.aborted) throw abandoned(signal);
    const session = await this.#connection.session();
    if (signal.aborted) throw abandoned(signal);
    return session;
  }
}

/** Sends one request and hands over each answer; settles when the call is over, with every listener gone. */
function exchange(
  session: ClientHttp2Session,
  path: string,
  body: Buffer,
  options: CallOptions,
  maxReceiveBytes: number,
  onMessage: (message: Buffer, stream: ClientHttp2Stream) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(requestHeaders(path, options.timeoutMs));
    const reader = new FrameReader(maxReceiveBytes);
    let status: GrpcError | 'ok' | undefined;
    const stop = (error: GrpcError) => {
      status ??= error;
      stream.close(constants.NGHTTP2_CANCEL);
    };
    const link = onAbort(options.signal, () => stop(abandoned(options.signal)));
    stream.on('response', (headers) => {
      status ??= statusOf(headers);
    });
    stream.on('trailers', (trailers) => {
      status ??= statusOf(trailers);
    });
    stream.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) onMessage(message, stream);
      } catch (error) {
        stop(
          error instanceof GrpcError
            ? error
            : new GrpcError('INTERNAL', `Cannot read an answer of ${path}`, error),
        );
      }
    });
    stream.on('error', (error) => {
      status ??= new GrpcError('UNAVAILABLE', `The connection broke during ${path}: ${error.message}`, error);
    });
    stream.on('close', () => {
      link[Symbol.dispose]();
      if (status === 'ok' && !reader.partial) resolve();
      else if (status instanceof GrpcError) reject(status);
      else reject(new GrpcError('UNAVAILABLE', `The connection was closed during ${path}`));
    });
    stream.end(body);
  });
}

function requestHeaders(path: string, timeoutMs: number | undefined): Record<string, string> {
  return {
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'user-agent': 'kubeling',
    ...(timeoutMs === undefined ? {} : { 'grpc-timeout': grpcTimeout(timeoutMs) }),
  };
}

/** At most eight digits may stand before the unit. */
function grpcTimeout(ms: number): string {
  const whole = Math.max(1, Math.ceil(ms));
  return whole < 1e8 ? `${whole}m` : `${Math.min(99_999_999, Math.ceil(whole / 1_000))}S`;
}

/** The call's status if these headers carry one: the trailers, or headers of a call that failed at once. */
function statusOf(
  headers: IncomingHttpHeaders & { ':status'?: number | undefined },
): GrpcError | 'ok' | undefined {
  const http = headers[':status'];
  const code = headers['grpc-status'];
  if (code === undefined) {
    if (http === undefined || http === 200) return undefined;
    return new GrpcError(grpcCodeOfHttp(http), `The other side answered with HTTP status ${http}`);
  }
  if (Number(code) === 0) return 'ok';
  const message = headers['grpc-message'];
  return new GrpcError(grpcCodeOf(Number(code)), decodeStatusMessage(String(message ?? '')));
}

function decode(method: MethodType, bytes: Buffer): unknown {
  try {
    return method.response.decode(bytes);
  } catch (cause) {
    throw new GrpcError('INTERNAL', `Cannot read the answer of ${method.name}`, cause);
  }
}

function abandoned(signal: AbortSignal): GrpcError {
  const reason: unknown = signal.reason;
  const late = reason instanceof KubelingError && reason.kind === 'DeadlineExceeded';
  return new GrpcError(late ? 'DEADLINE_EXCEEDED' : 'CANCELLED', 'The call was given up', reason);
}

/** Answers waiting for the reader of a stream. Past the mark the wire is paused, so it stays small. */
class Inbox {
  readonly #messages: Buffer[] = [];
  #paused: ClientHttp2Stream | undefined;
  #over: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  put(message: Buffer, stream: ClientHttp2Stream): void {
    this.#messages.push(message);
    if (this.#messages.length >= streamHighWater) {
      stream.pause();
      this.#paused = stream;
    }
    this.#wake?.();
  }

  end(error: unknown): void {
    this.#over = { error };
    this.#wake?.();
  }

  /** The next answer, or undefined at the end; throws how the call failed once all answers were taken. */
  async take(): Promise<Buffer | undefined> {
    while (this.#messages.length === 0) {
      if (this.#over !== undefined) {
        if (this.#over.error !== undefined) throw this.#over.error;
        return undefined;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const message = this.#messages.shift();
    if (this.#paused !== undefined && this.#messages.length < streamHighWater / 2) {
      this.#paused.resume();
      this.#paused = undefined;
    }
    return message;
  }
}
