import { chown, mkdir, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { KubelingError, readFileIfExists, writeFileAtomic } from '../../lib/index.ts';

export function backupOf(path: string): string {
  return `${path}.kubeling-backup`;
}

/**
 * Changes a file with secrets of a user, in one step: who reads it meanwhile sees the old text or the new. Links to it
 * stay links, its owner stays, who is the only one to read it from then on, and the old text is kept beside it. A new
 * one belongs to the owner of the directory: who calls us as root does not get files that only root can read.
 */
export async function changeUserFile(
  path: string,
  change: (text: string) => string,
): Promise<'same' | 'made' | 'changed'> {
  const target = await realpath(path).catch(() => resolve(path));
  const before = await read(target);
  const after = change(before ?? '');
  if (after === (before ?? '')) return 'same';
  if (before === undefined) {
    await makeDirectory(dirname(target));
    await write(target, after, { ...(await ownerOf(dirname(target))), mode: 0o600 });
    return 'made';
  }
  const facts = await ownerOf(target);
  await write(backupOf(target), before, facts);
  await write(target, after, facts);
  return 'changed';
}

async function read(path: string): Promise<string | undefined> {
  return await readFileIfExists(path).catch((cause) => {
    throw new KubelingError('FILE_READ', `Cannot read ${path}`, { cause, details: { path } });
  });
}

interface Facts {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

async function ownerOf(path: string): Promise<Facts> {
  const { mode, uid, gid } = await stat(path);
  return { mode: mode & 0o700, uid, gid };
}

async function write(path: string, text: string, { mode, uid, gid }: Facts): Promise<void> {
  await writeFileAtomic(path, text, { mode });
  await own(path, { uid, gid });
}

/** Only root can give files away, and only root has to. */
async function own(path: string, { uid, gid }: Pick<Facts, 'uid' | 'gid'>): Promise<void> {
  if (process.getuid?.() === 0) await chown(path, uid, gid);
}

/** Each one that is missing belongs to whom the one above it belongs to. */
async function makeDirectory(path: string): Promise<void> {
  const isThere = await stat(path).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  await makeDirectory(dirname(path));
  await mkdir(path, { mode: 0o750 }).catch((cause) => {
    throw new KubelingError('FILE_WRITE', `Cannot make the directory ${path}`, { cause, details: { path } });
  });
  await own(path, await ownerOf(dirname(path)));
}
