import { lstatSync } from 'node:fs';
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, errnoOf, type Random } from '../../lib/index.ts';
import { GrpcChannel, type ServiceAdder, serveOnDemand } from '../../protocols/grpc/index.ts';

/** The services of a socket. */
export interface OnDemand {
  readonly fill: (server: ServiceAdder) => Promise<void>;
  /** Called for calls that failed by an internal error. */
  readonly failed: (path: string, error: unknown) => void;
}

export type DeviceChannel = Pick<GrpcChannel, 'client' | 'close'>;

/** The operations for device plugin sockets. */
export interface DeviceHost {
  /**
   * Creates the directory and removes the sockets in it, by which plugins detect a restart of the
   * kubelet.
   */
  clear(directory: string): Promise<void>;
  /** Listens until the result is disposed; the services are loaded with the first connection. */
  serve(socket: string, service: OnDemand): Promise<AsyncDisposable>;
  /** Connects at the first call; the caller closes the channel. */
  open(socket: string): DeviceChannel;
  /** Identifies the socket at the path, which changes when it is replaced; undefined for none. */
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

/** Regular files are kept, for example the checkpoint. */
async function removeSocketAt(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isSocket()) await rm(path, { force: true });
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}
