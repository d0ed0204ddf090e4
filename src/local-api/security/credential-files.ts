import { chmod, mkdir } from 'node:fs/promises';
import {
  errnoOf,
  KubelingError,
  readBoundedFile,
  removeLeftoverTemps,
  writeFileAtomic,
} from '../../lib/index.ts';

/** The machine's files as far as authorities need them. Failures are FILE_READ and FILE_WRITE errors. */
export interface CredentialFiles {
  /** Makes the directory if need be, closes it to others, and removes what a crash left in it. */
  openDirectory(path: string): Promise<void>;
  /** Undefined when nothing is there. */
  read(path: string): Promise<string | undefined>;
  /** At any instant, and after a power cut, the old file is there or the new one, whole. */
  replace(path: string, text: string, mode: number): Promise<void>;
}

/** No certificate, key or kubeconfig comes near this. */
const maxFileBytes = 4 * 2 ** 20;

export function diskCredentialFiles(): CredentialFiles {
  return {
    async openDirectory(path) {
      try {
        await mkdir(path, { recursive: true, mode: 0o700 });
        await chmod(path, 0o700);
      } catch (cause) {
        throw new KubelingError('FILE_WRITE', `Cannot make ${path} a directory of our own`, { cause });
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
