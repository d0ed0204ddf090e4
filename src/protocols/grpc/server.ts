import { lstatSync, rmSync } from 'node:fs';
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { chmodSocket } from '../../lib/index.ts';
import { type MethodRoute, rejectCall, serveCall } from './server-call.ts';
import type { MethodType, ServiceImplementation, ServiceType } from './service.ts';
import { GrpcError } from './status.ts';

export interface GrpcServerOptions {
  readonly maxReceiveBytes?: number;
  /** Called with errors of a method that are not GrpcErrors: bugs of the implementation. */
  readonly onBug?: (path: string, error: unknown) => void;
}

export type ServiceAdder = Pick<GrpcServer, 'add'>;

/** A gRPC server for unary calls and server streams on a Unix socket. */
export class GrpcServer implements AsyncDisposable {
  readonly #routes = new Map<string, MethodRoute>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #server: Http2Server;
  readonly #maxReceiveBytes: number;
  readonly #onBug: (path: string, error: unknown) => void;

  constructor(options: GrpcServerOptions = {}) {
    this.#maxReceiveBytes = options.maxReceiveBytes ?? 16 << 20;
    this.#onBug = options.onBug ?? (() => {});
    // node:http2 is loaded with the first server, because most processes have none.
    this.#server = process.getBuiltinModule('node:http2').createServer({
      settings: { initialWindowSize: 1 << 20 },
      maxSessionMemory: 64,
      // Clients are trusted, and each cancelled call causes a reset, so the limit of resets is
      // raised: Node.js treats a thousand of them as an attack by default.
      streamResetBurst: 100_000,
      streamResetRate: 10_000,
    });
    this.#server.on('session', (session) => this.#serveSession(session));
    this.#server.on('stream', (stream, headers) => this.#serve(stream as ServerHttp2Stream, headers));
    // An error while accepting a connection, for example for lack of file descriptors, only affects
    // its client.
    this.#server.on('error', () => {});
  }

  add<Methods>(service: ServiceType<Methods>, implementation: ServiceImplementation<Methods>): void {
    for (const [name, method] of Object.entries<MethodType>(service.methods)) {
      const call = (implementation as Record<string, MethodRoute['call']>)[name];
      if (call === undefined) continue;
      const path = `/${service.fullName}/${method.name}`;
      this.#routes.set(path, { path, method, call: call.bind(implementation) });
    }
  }

  /**
   * Listens on a Unix socket and replaces a stale one. Only the user of the process may connect.
   */
  async listen(socketPath: string): Promise<void> {
    removeSocket(socketPath);
    await listenAt(this.#server, socketPath);
    chmodSocket(socketPath, 0o600);
  }

  /** Serves a connection that another listener accepted. */
  accept(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  /** Ends every call, stops listening and removes the socket file. May be called repeatedly. */
  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serveSession(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.on('close', () => this.#sessions.delete(session));
    session.on('error', () => session.destroy());
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => {});
    const route = this.#routes.get(String(headers[':path']));
    if (route === undefined) {
      rejectCall(stream, new GrpcError('UNIMPLEMENTED', `unknown method ${headers[':path']}`));
      return;
    }
    serveCall(stream, headers, route, this.#maxReceiveBytes).catch((error) => this.#onBug(route.path, error));
  }
}

/** Removes a stale socket; a file that is not a socket is kept. */
function removeSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) rmSync(path, { force: true });
}

function listenAt(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/**
 * Listens on a Unix socket like a GrpcServer, but uses hardly any memory before the first
 * connection, which loads the implementation. A failed load is retried by the next connection.
 * Disposing of the result ends every call and stops listening.
 */
export async function serveOnDemand(
  socketPath: string,
  fill: (server: ServiceAdder) => Promise<void>,
  options: GrpcServerOptions = {},
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  let loading: Promise<GrpcServer> | undefined;
  const load = async () => {
    const server = new GrpcServer(options);
    await fill(server);
    return server;
  };
  const serve = async (socket: Socket) => {
    loading ??= load();
    try {
      const server = await loading;
      if (socket.destroyed) return;
      server.accept(socket);
      socket.resume();
    } catch (error) {
      loading = undefined;
      socket.destroy();
      options.onBug?.(socketPath, error);
    }
  };
  // The connection is not read before the server is loaded.
  const listener = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    void serve(socket);
  });
  removeSocket(socketPath);
  await listenAt(listener, socketPath);
  listener.on('error', () => {});
  // An idle listener must not keep the process running.
  listener.unref();
  chmodSocket(socketPath, 0o600);
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      await loading?.then(
        (server) => server.close(),
        () => {},
      );
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
