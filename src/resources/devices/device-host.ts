import { lstatSync } from 'node:fs';
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, errnoOf, type Random } from '../../lib/index.ts';
import { GrpcChannel, type ServiceAdder, serveOnDemand } from '../../protocols/grpc/index.ts';

/** The gRPC services of one unix socket. */
export interface OnDemand {
  readonly fill: (server: ServiceAdder) => Promise<void>;
  /**
   * Called when one of these services has failed with an internal error while it handled a request
   * of another program.
   */
  readonly failed: (path: string, error: unknown) => void;
}

export type DeviceChannel = Pick<GrpcChannel, 'client' | 'close'>;

/** The operations on device plugin sockets. */
export interface DeviceHost {
  /**
   * Creates the directory and removes all sockets in it; plugins detect a restart of the kubelet by
   * this removal.
   */
  clear(directory: string): Promise<void>;
  /**
   * Listens on the socket until the result is disposed; the services are loaded with the first
   * connection.
   */
  serve(socket: string, service: OnDemand): Promise<AsyncDisposable>;
  /** Opens a gRPC channel, which connects at the first call; the caller closes it. */
  open(socket: string): DeviceChannel;
  /**
   * Returns an identity of the socket file, which changes when the socket is replaced; undefined if
   * the file does not exist.
   */
  identity(socket: string): string | undefined;
}

const directoryMode = 0o750;

export function hostDeviceHost(clock: Clock, random: Random): DeviceHost {
  return {
    clear: async (directory) => {
      await mkdir(directory, { recursive: true, mode: directoryMode });
      for (const name of await readdir(directory)) await removeSocketAt(join(directory, name));
    },
    serve: (socket, { fill, failed }) => serveOnDemand(socket, fill, { onBug: failed }),
    open: (socket) => new GrpcChannel({ target: `unix://${socket}`, clock, random, maxBackoffMs: 1_000 }),
    identity: (socket) => {
      const facts = lstatSync(socket, { bigint: true, throwIfNoEntry: false });
      return facts?.isSocket() ? `${facts.dev}:${facts.ino}:${facts.birthtimeNs}` : undefined;
    },
  };
}

/** Regular files in the directory are kept, for example the checkpoint. */
async function removeSocketAt(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isSocket()) await rm(path, { force: true });
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}
