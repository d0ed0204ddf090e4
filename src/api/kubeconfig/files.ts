import { readFile, stat } from 'node:fs/promises';
import { KubelingError } from '../../lib/index.ts';
import type { ApiFiles } from './kubeconfig.ts';

/** The size limit of a file, larger than every kubeconfig, certificate or token. */
const longestFile = 16 * 1024 * 1024;

/** Reads files of this machine. */
export const hostApiFiles: ApiFiles = {
  readText: async (path) => {
    const { size } = await stat(path);
    if (size <= longestFile) return await readFile(path, 'utf8');
    const message = `Cannot read ${path} as it must be at most ${longestFile} bytes: it has ${size}`;
    throw new KubelingError('FILE_READ', message);
  },
};
