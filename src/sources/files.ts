import { watch } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other';
  readonly size: number;
  /** The same as long as it is the same file, whatever is written to it. */
  readonly identity: string;
  /** Another after each write, as far as the system tells. */
  readonly version: string;
}

/** What manifests are read through. Links are followed. */
export interface ManifestFiles {
  /** Undefined when there is nothing at that path; rejects with the system's error when that cannot be told. */
  stat(path: string): Promise<FileFacts | undefined>;
  /** The names in a directory, in any order; empty when it is gone. */
  list(path: string): Promise<readonly string[]>;
  /** Undefined when it is gone. */
  read(path: string): Promise<Uint8Array | undefined>;
  /**
   * Calls back whenever something may have changed at the path or directly in it. A hint and no more: one may come for
   * nothing, and none may come for something. `onLost` says that no more hints will come.
   */
  watch(path: string, listener: WatchListener): Disposable;
}

export interface WatchListener {
  onHint(): void;
  onLost(error: unknown): void;
}

/** The files of the host. */
export function hostManifestFiles(): ManifestFiles {
  return {
    stat: (path) => unlessGone(statFile(path), undefined),
    list: (path) => unlessGone(readdir(path), []),
    read: (path) => unlessGone(readFile(path), undefined),
    watch: watchHost,
  };
}

async function statFile(path: string): Promise<FileFacts> {
  const facts = await stat(path, { bigint: true });
  return {
    kind: facts.isFile() ? 'file' : facts.isDirectory() ? 'directory' : 'other',
    size: Number(facts.size),
    // The number of a file that is gone is soon that of another.
    identity: `${facts.dev}:${facts.ino}:${facts.birthtimeNs}`,
    version: `${facts.ino}:${facts.size}:${facts.mtimeNs}:${facts.ctimeNs}`,
  };
}

async function unlessGone<T, G>(work: Promise<T>, gone: G): Promise<T | G> {
  try {
    return await work;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // A directory where a file was a moment ago, or the other way round, is gone as what it was.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EISDIR') return gone;
    throw error;
  }
}

/**
 * A file is watched through its directory: who watches the file itself keeps watching the old one when another takes
 * its place.
 */
function watchHost(path: string, listener: WatchListener): Disposable {
  const name = basename(path);
  const itself = openWatch(path, () => true, listener);
  const around = openWatch(dirname(path), (changed) => changed === null || changed === name, listener);
  return {
    [Symbol.dispose]: () => {
      itself();
      around();
    },
  };
}

function openWatch(
  path: string,
  matters: (name: string | null) => boolean,
  listener: WatchListener,
): () => void {
  try {
    const watcher = watch(path, { persistent: false }, (_event, name) => {
      if (matters(name)) listener.onHint();
    });
    watcher.on('error', (error) => listener.onLost(error));
    return () => watcher.close();
  } catch (error) {
    listener.onLost(error);
    return () => {};
  }
}
