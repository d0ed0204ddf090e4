import { readdir, readFile, stat } from 'node:fs/promises';

/** The file access of the configuration. */
export interface ConfigFiles {
  /** The complete text; rejects with the system error. */
  readFile(path: string, signal: AbortSignal): Promise<string>;
  /** The entries of a directory, in any order; symbolic links are not followed. */
  readDirectory(path: string, signal: AbortSignal): Promise<readonly DirectoryEntry[]>;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: 'directory' | 'other';
}

/** A configuration has a page or two; a larger file is something else. */
const maxFileBytes = 4 * 1024 * 1024;

/** The files of the host. */
export function hostFiles(): ConfigFiles {
  return {
    async readFile(path, signal) {
      const { size } = await stat(path);
      if (size > maxFileBytes)
        throw new Error(`must not be larger than ${maxFileBytes} bytes: it has ${size}`);
      return readFile(path, { encoding: 'utf8', signal });
    },
    async readDirectory(path, signal) {
      signal.throwIfAborted();
      const entries = await readdir(path, { withFileTypes: true });
      return entries.map((entry) => ({
        name: entry.name,
        kind: entry.isDirectory() ? 'directory' : 'other',
      }));
    },
  };
}
