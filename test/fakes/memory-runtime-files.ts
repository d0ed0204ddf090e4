import { posix } from 'node:path';
import { KubelingError } from '../../src/lib/index.ts';
import type { RuntimeFiles } from '../../src/runtime/index.ts';
import { PathTree } from './path-tree.ts';

/**
 * A store of files in memory by absolute path, shared with the simulated runtime, so that both use
 * the same machine.
 */
export interface FileStore {
  read(path: string): string | undefined;
  write(path: string, text: string): void;
  remove(path: string): void;
  /** Returns the names of the files and directories in a directory, in no order. */
  names(directory: string): readonly string[];
  paths(): readonly string[];
}

export function mapFileStore(): FileStore {
  const files = new Map<string, string>();
  const tree = new PathTree();
  return {
    read: (path) => files.get(path),
    write(path, text) {
      if (!files.has(path)) tree.add(path);
      files.set(path, text);
    },
    remove(path) {
      if (files.delete(path)) tree.delete(path);
    },
    names: (directory) => tree.names(directory),
    paths: () => [...files.keys()],
  };
}

/** The files of a machine that exists only in memory. Modes are not stored. */
export function memoryRuntimeFiles(store: FileStore = mapFileStore()): RuntimeFiles {
  const directories = new Set<string>();
  const links = new Map<string, string>();
  /** The paths of all directories and links. */
  const tree = new PathTree();
  const makeDirectory = async (path: string) => {
    if (!directories.has(path)) tree.add(path);
    directories.add(path);
  };
  const names = (directory: string) =>
    [...new Set([...store.names(directory), ...tree.names(directory)])].sort();
  const hasContent = (path: string) => store.names(path).length > 0 || !tree.isEmpty(path);
  const isThere = (path: string): boolean => {
    const target = links.get(path);
    if (target !== undefined) return isThere(target);
    return store.read(path) !== undefined || directories.has(path) || store.names(path).length > 0;
  };
  const kindOf = (path: string) => {
    if (store.read(path) !== undefined) return 'file';
    return directories.has(path) || hasContent(path) ? 'directory' : undefined;
  };
  const forget = (path: string) => {
    store.remove(path);
    if (directories.delete(path)) tree.delete(path);
    if (links.delete(path)) tree.delete(path);
  };
  const removeAll = (path: string) => {
    for (const name of names(path)) removeAll(`${path}/${name}`);
    forget(path);
  };
  return {
    makeDirectory: makeDirectory,
    makeDirectoryBelow: (root, inside) => makeDirectory(`${root}/${inside}`),
    makeSharedDirectory: makeDirectory,
    names: async (directory) => names(directory),
    async readEnd(path, maxBytes) {
      if (links.has(path)) throw new KubelingError('FILE_READ', `Cannot read ${path}: it is a link`);
      const text = store.read(path);
      return text === undefined ? undefined : endOf(Buffer.from(text), maxBytes);
    },
    async readLogEnd(podLogsDir, path, maxBytes) {
      const isLog = path.startsWith(`${podLogsDir}/`) && !links.has(path);
      if (!isLog) throw new KubelingError('LOG_REFUSED', `Cannot read the log ${path}`);
      const text = store.read(path);
      return text === undefined ? undefined : endOf(Buffer.from(text), maxBytes);
    },
    exists: async (path) => isThere(path),
    kindAt: async (path) => (links.has(path) ? 'link' : kindOf(path)),
    kindBehind: async (path) => kindOf(links.get(path) ?? path),
    readLink: async (path) => links.get(path),
    async link(target, path) {
      if (!links.has(path)) tree.add(path);
      links.set(path, target);
    },
    write: async (path, text) => store.write(path, text),
    async makeFile(path) {
      if (!isThere(path)) store.write(path, '');
    },
    replace: async (path, text) => store.write(path, text),
    remove: async (path) => removeAll(path),
    async removeLogs(path) {
      const [directory, base] = [posix.dirname(path), posix.basename(path)];
      for (const name of names(directory)) if (name.startsWith(base)) removeAll(posix.join(directory, name));
    },
    async removeEmptyDirectory(path) {
      if (names(path).length > 0) return 'not-empty';
      if (directories.delete(path)) tree.delete(path);
      return 'gone';
    },
  };
}

function endOf(bytes: Buffer, maxBytes: number): Buffer {
  return bytes.subarray(Math.max(0, bytes.length - maxBytes));
}
