import type { Clock, Random } from '../../lib/index.ts';
import type { ClientConnection } from '../http2/index.ts';
import { abortedCall, Call, type CallRequest } from './call.ts';
import { grpcFrame } from './frames.ts';
import { GrpcSession } from './grpc-session.ts';
import { MessageQueue } from './message-queue.ts';
import { RequestHeaders } from './request-headers.ts';
import type { CallOptions, MethodType, ServiceClient, ServiceType } from './service.ts';
import { GrpcError } from './status.ts';

export interface GrpcChannelOptions {
  /** The address of the server: `unix:///path` or `host:port`. */
  readonly target: string;
  readonly clock: Clock;
  readonly random: Random;
  /** The maximum size of a message from the server. */
  readonly maxReceiveBytes?: number;
  readonly baseBackoffMs?: number;
  readonly maxBackoffMs?: number;
  readonly connectTimeoutMs?: number;
}

/** A gRPC client over one HTTP/2 connection: unary calls and server streams, no compression. */
export class GrpcChannel implements Disposable {
  readonly #connection: GrpcSession;
  readonly #maxReceiveBytes: number;

  constructor(options: GrpcChannelOptions) {
    this.#maxReceiveBytes = options.maxReceiveBytes ?? 16 << 20;
    this.#connection = new GrpcSession({
      target: options.target,
      clock: options.clock,
      random: options.random,
      baseBackoffMs: options.baseBackoffMs ?? 100,
      maxBackoffMs: options.maxBackoffMs ?? 3_000,
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    });
  }

  /** Creates a client of one service; several clients may share the channel. */
  client<Methods>(service: ServiceType<Methods>): ServiceClient<Methods> {
    const calls: Record<string, unknown> = {};
    for (const [name, method] of Object.entries<MethodType>(service.methods)) {
      const head = new RequestHeaders(`/${service.fullName}/${method.name}`);
      calls[name] =
        method.kind === 'unary'
          ? (request: never, options: CallOptions) => this.#unary(head, method, request, options)
          : (request: never, options: CallOptions) => this.#stream(head, method, request, options);
    }
    return calls as ServiceClient<Methods>;
  }

  /**
   * Connects unless there is a connection. Rejects with UNAVAILABLE if connecting fails, or with
   * the error of a cancelled call if the signal is aborted.
   */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#session(signal);
  }

  /** Closes the connection and cancels every call on it. */
  close(): void {
    this.#connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #unary(
    head: RequestHeaders,
    method: MethodType,
    request: never,
    options: CallOptions,
  ): Promise<unknown> {
    let response: Buffer | undefined;
    let responses = 0;
    const call = await this.#call(head, method, request, options, (message) => {
      response = message;
      responses++;
    });
    await call.finished;
    if (response === undefined || responses > 1) {
      throw new GrpcError('INTERNAL', `${head.path} returned ${responses} responses instead of one`);
    }
    return decode(method, response);
  }

  async *#stream(
    head: RequestHeaders,
    method: MethodType,
    request: never,
    options: CallOptions,
  ): AsyncGenerator<unknown> {
    const inbox = new MessageQueue();
    const call = await this.#call(head, method, request, options, (message, source) =>
      inbox.put(message, source),
    );
    call.finished.then(
      () => inbox.end(undefined),
      (error) => inbox.end(error),
    );
    try {
      for (let message = await inbox.take(); message !== undefined; message = await inbox.take()) {
        if (options.signal.aborted) throw abortedCall(options.signal);
        yield decode(method, message);
      }
    } finally {
      call.cancel();
    }
  }

  /** Starts a call: synchronously if there is a connection, otherwise after connecting. */
  #call(
    head: RequestHeaders,
    method: MethodType,
    request: never,
    options: CallOptions,
    onMessage: CallRequest['onMessage'],
  ): Call | Promise<Call> {
    const body = grpcFrame(method.request.encode(request));
    const maxReceiveBytes = this.#maxReceiveBytes;
    const begin = (session: ClientConnection) =>
      new Call(session, { head, body, maxReceiveBytes, onMessage }, options);
    const session = this.#session(options.signal);
    return session instanceof Promise ? session.then(begin) : begin(session);
  }

  #session(signal: AbortSignal): ClientConnection | Promise<ClientConnection> {
    if (signal.aborted) throw abortedCall(signal);
    const session = this.#connection.session(signal);
    if (!(session instanceof Promise)) return session;
    return session.catch((error: unknown) => {
      throw signal.aborted ? abortedCall(signal) : error;
    });
  }
}

function decode(method: MethodType, bytes: Buffer): unknown {
  try {
    return method.response.decode(bytes);
  } catch (cause) {
    throw new GrpcError('INTERNAL', `Cannot decode the response of ${method.name}: ${String(cause)}`, cause);
  }
}
