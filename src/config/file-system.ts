import { readdir, readFile, stat } from 'node:fs/promises';
import { posix } from 'node:path';

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

/** Texts by absolute path, for nodes in tests and simulations. */
export function memoryFiles(texts: Readonly<Record<string, string>>): ConfigFiles {
  const missing = (path: string) => new Error(`no such file or directory: ${path}`);
  return {
    async readFile(path) {
      const text = Object.hasOwn(texts, path) ? texts[path] : undefined;
      if (text === undefined) throw missing(path);
      return text;
    },
    async readDirectory(path) {
      const inside = Object.keys(texts).filter((file) => file.startsWith(posix.join(path, '/')));
      if (inside.length === 0) throw missing(path);
      const parts = inside.map((file) => posix.relative(path, file).split('/'));
      const names = new Map(
        parts.map(([name = '', ...rest]) => [name, rest.length > 0 ? 'directory' : 'other'] as const),
      );
      return [...names].map(([name, kind]) => ({ name, kind }));
    },
  };
}
