import type { ClientHttp2Session } from 'node:http2';
import type { Clock } from '../clock.ts';
import type { Random } from '../random.ts';
import { abandoned, Call, type CallRequest } from './call.ts';
import { Connection } from './connection.ts';
import { frame } from './frames.ts';
import { Inbox } from './inbox.ts';
import type { CallOptions, MethodType, ServiceClient, ServiceType } from './service.ts';
import { GrpcError } from './status.ts';

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

  /** Connects unless that is so already; rejects with UNAVAILABLE, or as a call would that is given up. */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#session(signal);
  }

  /** Ends the connection and every call on it. */
  close(): void {
    this.#connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #unary(path: string, method: MethodType, request: never, options: CallOptions): Promise<unknown> {
    let answer: Buffer | undefined;
    let answers = 0;
    const call = await this.#call(path, method, request, options, (message) => {
      answer = message;
      answers++;
    });
    await call.finished;
    if (answer === undefined || answers > 1) {
      throw new GrpcError('INTERNAL', `${path} gave ${answers} answers instead of one`);
    }
    return decode(method, answer);
  }

  async *#stream(
    path: string,
    method: MethodType,
    request: never,
    options: CallOptions,
  ): AsyncGenerator<unknown> {
    const inbox = new Inbox();
    const call = await this.#call(path, method, request, options, (message, stream) =>
      inbox.put(message, stream),
    );
    call.finished.then(
      () => inbox.end(undefined),
      (error) => inbox.end(error),
    );
    try {
      for (let message = await inbox.take(); message !== undefined; message = await inbox.take()) {
        if (options.signal.aborted) throw abandoned(options.signal);
        yield decode(method, message);
      }
    } finally {
      call.leave();
    }
  }

  async #call(
    path: string,
    method: MethodType,
    request: never,
    options: CallOptions,
    onMessage: CallRequest['onMessage'],
  ): Promise<Call> {
    const body = frame(method.request.encode(request));
    const session = await this.#session(options.signal);
    return new Call(session, { path, body, maxReceiveBytes: this.#maxReceiveBytes, onMessage }, options);
  }

  async #session(signal: AbortSignal): Promise<ClientHttp2Session> {
    if (signal.aborted) throw abandoned(signal);
    try {
      return await this.#connection.session(signal);
    } catch (error) {
      throw signal.aborted ? abandoned(signal) : error;
    }
  }
}

function decode(method: MethodType, bytes: Buffer): unknown {
  try {
    return method.response.decode(bytes);
  } catch (cause) {
    throw new GrpcError('INTERNAL', `Cannot read the answer of ${method.name}: ${String(cause)}`, cause);
  }
}
