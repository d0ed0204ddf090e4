import { lstatSync, rmSync } from 'node:fs';
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { chmodSocket } from '../../lib/index.ts';
import { type Route, refuse, serveCall } from './server-call.ts';
import type { MethodType, ServiceImplementation, ServiceType } from './service.ts';
import { GrpcError } from './status.ts';

export interface GrpcServerOptions {
  readonly maxReceiveBytes?: number;
  /** Told of failures in a method that are not GrpcErrors: bugs of the implementation. */
  readonly onBug?: (path: string, error: unknown) => void;
}

export type ServiceAdder = Pick<GrpcServer, 'add'>;

/** A gRPC server for unary calls and server streams, on a unix socket. */
export class GrpcServer implements AsyncDisposable {
  readonly #routes = new Map<string, Route>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #server: Http2Server;
  readonly #maxReceiveBytes: number;
  readonly #onBug: (path: string, error: unknown) => void;

  constructor(options: GrpcServerOptions = {}) {
    this.#maxReceiveBytes = options.maxReceiveBytes ?? 16 << 20;
    this.#onBug = options.onBug ?? (() => {});
    // Loaded with the first server: most processes have none.
    this.#server = process.getBuiltinModule('node:http2').createServer({
      settings: { initialWindowSize: 1 << 20 },
      maxSessionMemory: 64,
      // Callers are trusted, and each call they give up is a reset; the default takes a thousand for an attack.
      streamResetBurst: 100_000,
      streamResetRate: 10_000,
    });
    this.#server.on('session', (session) => this.#greet(session));
    this.#server.on('stream', (stream, headers) => this.#serve(stream as ServerHttp2Stream, headers));
    // A connection that could not be accepted, say for want of file descriptors, is the caller's loss, not our end.
    this.#server.on('error', () => {});
  }

  add<Methods>(service: ServiceType<Methods>, implementation: ServiceImplementation<Methods>): void {
    for (const [name, method] of Object.entries<MethodType>(service.methods)) {
      const call = (implementation as Record<string, Route['call']>)[name];
      if (call === undefined) continue;
      const path = `/${service.fullName}/${method.name}`;
      this.#routes.set(path, { path, method, call: call.bind(implementation) });
    }
  }

  /** Listens on a unix socket, taking the place of one left over. Only its owner may connect. */
  async listen(socketPath: string): Promise<void> {
    removeSocket(socketPath);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(socketPath, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    chmodSocket(socketPath, 0o600);
  }

  /** Serves whoever has connected to somebody else that listens. */
  accept(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  /** Ends every call and stops listening; the socket file goes with it. May be called twice. */
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
    stream.on('error', () => {});
    const route = this.#routes.get(String(headers[':path']));
    if (route === undefined) {
      refuse(stream, new GrpcError('UNIMPLEMENTED', `unknown method ${headers[':path']}`));
      return;
    }
    serveCall(stream, headers, route, this.#maxReceiveBytes).catch((error) => this.#onBug(route.path, error));
  }
}

/** Anything but a socket at that path is not ours to remove. */
export function removeSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) rmSync(path, { force: true });
}

/**
 * Listens on a unix socket as a GrpcServer does, but costs next to nothing before somebody calls: what answers is loaded
 * with the first caller, who waits for it. What cannot be loaded then is tried with the next one. Disposing of the result
 * ends every call and stops listening.
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
  // Nothing is read before there is somebody who understands it.
  const listener = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    void serve(socket);
  });
  removeSocket(socketPath);
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(socketPath, () => {
      listener.off('error', reject);
      resolve();
    });
  });
  listener.on('error', () => {});
  // Who only waits for callers keeps no process alive.
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
