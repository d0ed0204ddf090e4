import { createServer, type Socket } from 'node:net';
import { chmodSocket } from '../../lib/index.ts';
import { GrpcServer, type GrpcServerOptions, removeSocket, type ServiceAdder } from './server.ts';

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
