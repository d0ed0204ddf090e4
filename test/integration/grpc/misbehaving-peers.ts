import {
  createServer as createHttp2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';

/** The minimum that an HTTP/2 peer must send: a settings frame with all defaults. */
export const emptySettings = Buffer.from('000000040000000000', 'hex');

export interface Peer extends AsyncDisposable {
  readonly sockets: readonly Socket[];
}

/** Listens on a Unix socket and calls the given function for each connection. */
export async function rawPeer(path: string, greet: (socket: Socket) => void): Promise<Peer> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    greet(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Connects the client to the real server at the path, and forwards data both ways. */
export function forward(socket: Socket, path: string): void {
  const far = connect(path);
  far.on('error', () => socket.destroy());
  socket.on('close', () => far.destroy());
  socket.pipe(far).pipe(socket);
}

/** Starts an HTTP/2 server that calls the given function for each request, gRPC or not. */
export async function http2Peer(
  path: string,
  answer: (stream: ServerHttp2Stream) => void,
  settings: Settings = {},
): Promise<AsyncDisposable & { readonly sessions: readonly ServerHttp2Session[] }> {
  const server = createHttp2Server({ settings });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => {});
  });
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.resume();
    answer(stream as ServerHttp2Stream);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    sessions,
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
