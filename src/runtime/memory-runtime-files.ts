import { KubelingError } from '../lib/index.ts';
import type { RuntimeFiles } from './runtime-files.ts';

/** Files in memory by their whole path, such as the simulated runtime's, so that both see the same machine. */
export interface FileStore {
  read(path: string): string | undefined;
  write(path: string, text: string): void;
  remove(path: string): void;
  paths(): readonly string[];
}

export function mapFileStore(): FileStore {
  const files = new Map<string, string>();
  return {
    read: (path) => files.get(path),
    write: (path, text) => void files.set(path, text),
    remove: (path) => void files.delete(path),
    paths: () => [...files.keys()],
  };
}

/** The files of a machine that exists only in memory. Modes are not kept. */
export function memoryRuntimeFiles(store: FileStore = mapFileStore()): RuntimeFiles {
  const directories = new Set<string>();
  const links = new Map<string, string>();
  const below = (directory: string) => (path: string) => path.startsWith(`${directory}/`);
  const known = () => [...store.paths(), ...directories, ...links.keys()];
  const isThere = (path: string): boolean => {
    const target = links.get(path);
    if (target !== undefined) return isThere(target);
    return store.read(path) !== undefined || directories.has(path) || store.paths().some(below(path));
  };
  const kindOf = (path: string) => {
    if (store.read(path) !== undefined) return 'file';
    return directories.has(path) || known().some(below(path)) ? 'directory' : undefined;
  };
  const names = (directory: string) => {
    const inside = known().filter(below(directory));
    return [...new Set(inside.map((path) => path.slice(directory.length + 1).split('/')[0] ?? ''))].sort();
  };
  return {
    makeDirectory: async (path) => void directories.add(path),
    makeSharedDirectory: async (path) => void directories.add(path),
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
    link: async (target, path) => void links.set(path, target),
    write: async (path, text) => store.write(path, text),
    async makeFile(path) {
      if (!isThere(path)) store.write(path, '');
    },
    replace: async (path, text) => store.write(path, text),
    async remove(path) {
      const isInside = below(path);
      for (const file of store.paths()) if (file === path || isInside(file)) store.remove(file);
      for (const directory of [...directories]) {
        if (directory === path || isInside(directory)) directories.delete(directory);
      }
      for (const link of [...links.keys()]) if (link === path || isInside(link)) links.delete(link);
    },
    async removeEmptyDirectory(path) {
      if (names(path).length > 0) return 'not-empty';
      directories.delete(path);
      return 'gone';
    },
  };
}

function endOf(bytes: Buffer, maxBytes: number): Buffer {
  return bytes.subarray(Math.max(0, bytes.length - maxBytes));
}
