import { chmodSync, rmSync } from 'node:fs';
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { describeError } from '../errors.ts';
import { FrameReader, frame } from './frames.ts';
import type { CallOptions, MethodType, ServiceImplementation, ServiceType } from './service.ts';
import { encodeStatusMessage, GrpcError, numberOfGrpcCode } from './status.ts';

export interface GrpcServerOptions {
  readonly maxReceiveBytes?: number;
  /** Told of failures in a method that are not GrpcErrors: bugs of the implementation. */
  readonly onBug?: (path: string, error: unknown) => void;
}

interface Route {
  readonly method: MethodType;
  readonly call: (request: unknown, options: CallOptions) => unknown;
}

/** A gRPC server for unary calls and server streams, on a unix socket or a loopback port. */
export class GrpcServer implements AsyncDisposable {
  readonly #routes = new Map<string, Route>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #server: Http2Server;
  readonly #maxReceiveBytes: number;
  readonly #onBug: (path: string, error: unknown) => void;

  constructor(options: GrpcServerOptions = {}) {
    this.#maxReceiveBytes = options.maxReceiveBytes ?? 16 << 20;
    this.#onBug = options.onBug ?? (() => {});
    this.#server = createServer({ settings: { initialWindowSize: 1 << 20 }, maxSessionMemory: 64 });
    this.#server.on('session', (session) => this.#greet(session));
    this.#server.on('stream', (stream, headers) => this.#serve(stream as ServerHttp2Stream, headers));
  }

  add<Methods>(service: ServiceType<Methods>, implementation: ServiceImplementation<Methods>): void {
    for (const [name, method] of Object.entries<MethodType>(service.methods)) {
      const call = (implementation as Record<string, Route['call']>)[name];
      if (call === undefined) continue;
      this.#routes.set(`/${service.fullName}/${method.name}`, { method, call: call.bind(implementation) });
    }
  }

  /** Listens on a unix socket, taking the place of a left-over file. Only its owner may connect. */
  async listen(socketPath: string): Promise<void> {
    rmSync(socketPath, { force: true });
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(socketPath, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    chmodSync(socketPath, 0o600);
  }

  /** Ends every call and stops listening; the socket file goes with it. */
  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #greet(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.on('close', () => this.#sessions.delete(session));
    session.on('error', () => session.destroy());
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const path = String(headers[':path']);
    const controller = new AbortController();
    stream.on('error', () => {});
    stream.on('close', () => controller.abort(new GrpcError('CANCELLED', 'The caller left')));
    const route = this.#routes.get(path);
    if (route === undefined) {
      refuse(stream, new GrpcError('UNIMPLEMENTED', `unknown method ${path}`));
      return;
    }
    receive(stream, this.#maxReceiveBytes).then(
      (body) => this.#answer(stream, path, route, body, controller.signal),
      (error) => finish(stream, asGrpcError(error)),
    );
  }

  async #answer(
    stream: ServerHttp2Stream,
    path: string,
    route: Route,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const request = decodeRequest(route.method, body);
      const result = route.call(request, { signal });
      if (route.method.kind === 'unary') await send(stream, route.method, await result);
      else for await (const item of result as AsyncIterable<unknown>) await send(stream, route.method, item);
      finish(stream, undefined);
    } catch (error) {
      if (!(error instanceof GrpcError) && !signal.aborted) this.#onBug(path, error);
      finish(stream, asGrpcError(error));
    }
  }
}

function receive(stream: ServerHttp2Stream, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const reader = new FrameReader(limit);
    let body: Buffer | undefined;
    stream.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) body = message;
      } catch (error) {
        reject(error);
      }
    });
    stream.on('end', () => {
      if (body !== undefined && !reader.partial) resolve(body);
      else reject(new GrpcError('INTERNAL', 'The request ended before its message'));
    });
  });
}

function decodeRequest(method: MethodType, body: Buffer): unknown {
  try {
    return method.request.decode(body);
  } catch (cause) {
    throw new GrpcError('INTERNAL', `Cannot read the request of ${method.name}`, cause);
  }
}

/** Sends one answer, and waits while the caller does not take it. */
async function send(stream: ServerHttp2Stream, method: MethodType, message: unknown): Promise<void> {
  if (stream.destroyed) throw new GrpcError('CANCELLED', 'The caller left');
  if (!stream.headersSent) stream.respond(responseHeaders, { waitForTrailers: true });
  const body = frame((method.response.encode as (message: unknown) => Buffer)(message));
  if (stream.write(body)) return;
  await new Promise<void>((resolve) => {
    const go = () => {
      stream.off('drain', go);
      stream.off('close', go);
      resolve();
    };
    stream.on('drain', go);
    stream.on('close', go);
  });
}

const responseHeaders = { ':status': 200, 'content-type': 'application/grpc' };

function finish(stream: ServerHttp2Stream, error: GrpcError | undefined): void {
  if (stream.destroyed) return;
  if (error !== undefined && !stream.headersSent) {
    refuse(stream, error);
    return;
  }
  if (!stream.headersSent) stream.respond(responseHeaders, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailersOf(error)));
  stream.end();
}

function refuse(stream: ServerHttp2Stream, error: GrpcError): void {
  stream.respond({ ...responseHeaders, ...trailersOf(error) }, { endStream: true });
}

function trailersOf(error: GrpcError | undefined): Record<string, string> {
  if (error === undefined) return { 'grpc-status': '0' };
  return {
    'grpc-status': String(numberOfGrpcCode(error.grpcCode)),
    'grpc-message': encodeStatusMessage(error.message),
  };
}

function asGrpcError(error: unknown): GrpcError {
  return error instanceof GrpcError ? error : new GrpcError('UNKNOWN', describeError(error), error);
}
