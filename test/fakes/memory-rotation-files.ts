import { posix } from 'node:path';
import { KubelingError } from '../../src/lib/index.ts';
import type { RotationFiles } from '../../src/runtime/index.ts';
import type { FileStore } from './memory-runtime-files.ts';

/** A store of files that can be renamed. */
export interface RenamingStore extends FileStore {
  rename(from: string, to: string): void;
}

/**
 * The log files of a machine that exists only in memory. A compressed file keeps its content under
 * another name.
 */
export function memoryRotationFiles(store: RenamingStore): RotationFiles {
  const bytesAt = (path: string) => store.read(path)?.length;
  return {
    size: async (path) => bytesAt(path),
    list: async (directory) =>
      store.names(directory).flatMap((name) => {
        const bytes = bytesAt(posix.join(directory, name));
        return bytes === undefined ? [] : [{ name, bytes }];
      }),
    async rename(from, to) {
      if (store.read(from) === undefined) throw new KubelingError('FILE_WRITE', `Cannot rename ${from}`);
      store.rename(from, to);
    },
    async restore(from, to) {
      if (store.read(to) !== undefined) return 'taken';
      store.rename(from, to);
      return 'done';
    },
    remove: async (path) => store.remove(path),
    async compress(path) {
      if (store.read(path) !== undefined) store.rename(path, `${path}.gz`);
    },
    freeBytes: async () => undefined,
  };
}
