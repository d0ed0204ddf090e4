import { chmod, mkdir } from 'node:fs/promises';
import {
  errnoOf,
  KubelingError,
  readBoundedFile,
  removeLeftoverTemps,
  writeFileAtomic,
} from '../../lib/index.ts';

/** Reads and writes credential files. Failures are FILE_READ and FILE_WRITE errors. */
export interface CredentialFiles {
  /** Creates a private directory and removes temporary files left by a crash. */
  openDirectory(path: string): Promise<void>;
  /** Reads a file; undefined if it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** Writes a file atomically: after a power failure either the old or the new file is complete. */
  replace(path: string, text: string, mode: number): Promise<void>;
}

/** The maximum size of a credential file, larger than any certificate, key or kubeconfig. */
const maxFileBytes = 4 * 2 ** 20;

export function diskCredentialFiles(): CredentialFiles {
  return {
    async openDirectory(path) {
      try {
        await mkdir(path, { recursive: true, mode: 0o700 });
        await chmod(path, 0o700);
      } catch (cause) {
        throw new KubelingError('FILE_WRITE', `Cannot create the private directory ${path}`, { cause });
      }
      await removeLeftoverTemps(path);
    },
    async read(path) {
      try {
        return await readBoundedFile(path, maxFileBytes);
      } catch (cause) {
        if (errnoOf(cause) === 'ENOENT') return undefined;
        throw new KubelingError('FILE_READ', `Cannot read ${path}`, { cause, details: { path } });
      }
    },
    replace: (path, text, mode) => writeFileAtomic(path, text, { mode }),
  };
}
