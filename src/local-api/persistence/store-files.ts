import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { apiTime, type Clock, KubelingError, type LockDeps, withLockFile } from '../../lib/index.ts';
import { temporaryPathOf } from './worker/schema.ts';

/** The file contains Secrets, so its directory is accessible only by its owner. */
export async function prepareDirectory(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await chmod(dirname(path), 0o700);
  } catch (cause) {
    throw new KubelingError(
      'STORE_OPEN',
      `Cannot open the store ${path} as its directory cannot be created`,
      {
        cause,
      },
    );
  }
}

/**
 * Sets mode 0600 for the file; SQLite uses the mode for the write-ahead log too. A new file is
 * created under a temporary name, so that a file under the final name is always complete, and an
 * empty one is detected as damaged.
 */
export async function prepareFile(path: string): Promise<void> {
  try {
    if ((await sizeOf(path)) !== undefined) return await chmod(path, 0o600);
    for (const part of ['', '-journal']) await rm(temporaryPathOf(path) + part, { force: true });
    await (await open(temporaryPathOf(path), 'wx', 0o600)).close();
  } catch (cause) {
    throw new KubelingError('STORE_OPEN', `Cannot open the store ${path} as its file cannot be created`, {
      cause,
    });
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * The suffixes of the store file and its write-ahead log. Without the log, the file contains an
 * older state.
 */
const parts = ['', '-wal'];

/**
 * Copies an unusable file for recovery. The name of the copy identifies the content, so that there
 * is one copy per content.
 */
export async function copyForRecovery(path: string): Promise<string> {
  const { mtimeMs, size } = await stat(path).catch(() => stat(`${path}-wal`));
  const copy = `${path}.refused-${Math.floor(mtimeMs)}-${size}`;
  for (const part of parts) await copyOnce(path + part, copy + part);
  await syncDirectory(dirname(path));
  return copy;
}

async function copyOnce(from: string, to: string): Promise<void> {
  const [source, target] = await Promise.all([sizeOf(from), sizeOf(to)]);
  // A copy of a different size is incomplete and is written again.
  if (source === undefined || source === target) return;
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    await chmod(to, 0o600);
  } catch (error) {
    await rm(to, { force: true });
    throw error;
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Renames the file and returns the new path; undefined if the file is missing or empty. */
export async function setAside(path: string, clock: Clock): Promise<string | undefined> {
  if (((await sizeOf(path)) ?? 0) === 0 && ((await sizeOf(`${path}-wal`)) ?? 0) === 0) {
    for (const part of parts) await rm(path + part, { force: true });
    return undefined;
  }
  const base = `${path}.set-aside-${apiTime(clock.now()).replaceAll(/[-:]/g, '')}`;
  let aside = base;
  for (let count = 2; (await sizeOf(aside)) !== undefined; count++) aside = `${base}-${count}`;
  // The file is renamed before its write-ahead log: if this is interrupted, a log without a file is
  // detected, while a file without its log would be an older state.
  for (const part of parts) {
    if ((await sizeOf(path + part)) !== undefined) await rename(path + part, aside + part);
  }
  await rm(`${path}-shm`, { force: true });
  await syncDirectory(dirname(path));
  return aside;
}

/**
 * Acquires the lock file and returns a function that releases it. Rejects with LOCK_HELD if another
 * process holds it.
 */
export async function acquireLock(
  path: string,
  deps: LockDeps,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const release = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const held = withLockFile(
    path,
    deps,
    () => {
      taken.resolve();
      return release.promise;
    },
    signal,
  );
  held.catch(taken.reject);
  await taken.promise;
  return () => {
    release.resolve();
    return held;
  };
}
