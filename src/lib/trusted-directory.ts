import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { KubelingError } from './errors.ts';

const groupWrite = 0o020;
const otherWrite = 0o002;
const sticky = 0o1000;

/**
 * Returns why a directory must not be used by root, or undefined when only root (or the calling user) can change it: the
 * directory belongs to one of them and is not writable by others, and no ancestor lets other users replace it. Missing
 * directories are trusted, because the caller creates them. The path must be absolute and free of symbolic links.
 */
export async function untrustedDirectory(
  path: string,
  uid = process.getuid?.() ?? 0,
): Promise<string | undefined> {
  for (let at = path; ; at = dirname(at)) {
    const why = await untrustedStep(at, { uid, isTarget: at === path });
    if (why !== undefined) return why;
    if (at === dirname(at)) return undefined;
  }
}

async function untrustedStep(
  path: string,
  { uid, isTarget }: { readonly uid: number; readonly isTarget: boolean },
): Promise<string | undefined> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (stats === undefined) return undefined;
  if (stats.uid !== 0 && stats.uid !== uid) return `${path} belongs to the user ${stats.uid}`;
  if (!isWritableByOthers(stats)) return undefined;
  // In a sticky directory such as /tmp, other users cannot rename or remove entries of root.
  if (!isTarget && (stats.mode & sticky) !== 0) return undefined;
  return `${path} is writable by other users (mode ${(stats.mode & 0o7777).toString(8)})`;
}

/**
 * Whether other users than the owner may create and rename entries of a directory. The group root
 * counts as the user root.
 */
export function isWritableByOthers({ mode, gid }: { readonly mode: number; readonly gid: number }): boolean {
  return (mode & otherWrite) !== 0 || ((mode & groupWrite) !== 0 && gid !== 0);
}

/**
 * Reads a small regular file that only root (or the calling user) can change; undefined if it is
 * missing. Throws for any other file. Never blocks on a pipe, and does not follow a symbolic link
 * at the end of the path.
 */
export async function readTrustedFile(
  path: string,
  maxBytes: number,
  uid = process.getuid?.() ?? 0,
): Promise<string | undefined> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  await using opened = file;
  const stats = await opened.stat();
  if (!stats.isFile()) throw untrusted(path, 'it is no regular file');
  if (stats.uid !== 0 && stats.uid !== uid) throw untrusted(path, `it belongs to the user ${stats.uid}`);
  if (isWritableByOthers(stats)) throw untrusted(path, 'it is writable by other users');
  const { buffer, bytesRead } = await opened.read(Buffer.alloc(Math.min(stats.size, maxBytes) + 1));
  if (bytesRead > maxBytes) throw untrusted(path, `it is larger than ${maxBytes} bytes`);
  return buffer.toString('utf8', 0, bytesRead);
}

function untrusted(path: string, why: string): KubelingError {
  return new KubelingError('UNTRUSTED_FILE', `Cannot read ${path} as ${why}`);
}
