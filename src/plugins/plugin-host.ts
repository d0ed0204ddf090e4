import { watch } from 'node:fs';
import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, errnoOf, type Random } from '../lib/index.ts';
import { GrpcChannel } from '../protocols/grpc/index.ts';

/** A socket somebody listens at, or once did. */
export interface PluginSocket {
  readonly path: string;
  /** Another one as soon as another socket is at that path. */
  readonly identity: string;
}

export type PluginChannel = Pick<GrpcChannel, 'client' | 'close'>;

/** The machine as far as plugins are found on it and spoken to. */
export interface PluginHost {
  /** Makes it unless it is there: others put their sockets into it. */
  prepare(directory: string): Promise<void>;
  /** All sockets below the directory but those whose name, or that of a directory on the way, begins with a dot. */
  sockets(directory: string): Promise<readonly PluginSocket[]>;
  /** Calls back whenever something may have changed below the directory: a hint and no more. */
  watch(directory: string, hint: () => void): Disposable;
  /** Connects with the first call; whoever opens it closes it. */
  open(socket: string): PluginChannel;
}

/** No plugin lies deeper; whoever makes a circle of directories does not keep the node busy. */
const deepest = 8;
const directoryMode = 0o750;

export function hostPluginHost(clock: Clock, random: Random): PluginHost {
  return {
    prepare: async (directory) => {
      await mkdir(directory, { recursive: true, mode: directoryMode });
    },
    sockets: (directory) => socketsBelow(directory, deepest),
    watch: (directory, hint) => {
      try {
        const watcher = watch(directory, { persistent: false, recursive: true }, hint);
        watcher.on('error', () => watcher.close());
        return { [Symbol.dispose]: () => watcher.close() };
      } catch {
        // It is looked at now and then all the same.
        return { [Symbol.dispose]: () => {} };
      }
    },
    open: (socket) => new GrpcChannel({ target: `unix://${socket}`, clock, random, maxBackoffMs: 1_000 }),
  };
}

async function socketsBelow(directory: string, depth: number): Promise<readonly PluginSocket[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(unlessGone);
  const shown = (entries ?? []).filter(({ name }) => !name.startsWith('.'));
  const found = await Promise.all(
    shown.map(async (entry) => {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) return depth > 0 ? await socketsBelow(path, depth - 1) : [];
      return entry.isSocket() ? await socketAt(path) : [];
    }),
  );
  return found.flat();
}

async function socketAt(path: string): Promise<readonly PluginSocket[]> {
  const facts = await lstat(path, { bigint: true }).catch(unlessGone);
  if (facts === undefined || !facts.isSocket()) return [];
  return [{ path, identity: `${facts.dev}:${facts.ino}:${facts.birthtimeNs}` }];
}

function unlessGone(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) throw error;
}
