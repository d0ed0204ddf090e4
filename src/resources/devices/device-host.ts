import { lstatSync } from 'node:fs';
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, errnoOf, type Random } from '../../lib/index.ts';
import { GrpcChannel, type ServiceAdder, serveOnDemand } from '../../protocols/grpc/index.ts';

/** Who answers at a socket. */
export interface OnDemand {
  readonly fill: (server: ServiceAdder) => Promise<void>;
  /** Told of calls that failed by a mistake of ours. */
  readonly failed: (path: string, error: unknown) => void;
}

export type DeviceChannel = Pick<GrpcChannel, 'client' | 'close'>;

/** The machine as far as plugins for devices are spoken to on it. */
export interface DeviceHost {
  /** Makes the directory, and removes the sockets in it: by that plugins know that the kubelet is another one. */
  clear(directory: string): Promise<void>;
  /** Listens until the result is disposed of; who answers is asked for with the first caller. */
  serve(socket: string, service: OnDemand): Promise<AsyncDisposable>;
  /** Connects with the first call; whoever opens it closes it. */
  open(socket: string): DeviceChannel;
  /** Another one as soon as another socket is at that path; undefined for none. */
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

/** Files stay: what is noted of devices is one of them. */
async function removeSocketAt(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isSocket()) await rm(path, { force: true });
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
}
