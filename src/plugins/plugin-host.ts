import { watch } from 'node:fs';
import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, errnoOf, type Random } from '../lib/index.ts';
import { GrpcChannel } from '../protocols/grpc/index.ts';

/** A socket in the plugin directory, with or without a listener. */
export interface PluginSocket {
  readonly path: string;
  /**
   * Identifies the socket file: the value changes when a new socket is created at the same path.
   */
  readonly identity: string;
}

export type PluginChannel = Pick<GrpcChannel, 'client' | 'close'>;

/** Access to the plugin sockets of the machine. */
export interface PluginHost {
  /** Creates the directory if it is missing; plugins create their sockets in it. */
  prepare(directory: string): Promise<void>;
  /**
   * Lists all sockets below the directory, except those whose name or whose directory's name starts
   * with a dot.
   */
  sockets(directory: string): Promise<readonly PluginSocket[]>;
  /** Calls back when sockets below the directory may have changed. This is only a hint. */
  watch(directory: string, hint: () => void): Disposable;
  /** Creates a client of the socket that connects with its first call; the caller closes it. */
  open(socket: string): PluginChannel;
}

/**
 * The maximum depth of directories with sockets. Plugins use fewer levels; the limit protects
 * against cyclic directories.
 */
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
        // A failed watch is ignored, because the directory is also polled.
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
