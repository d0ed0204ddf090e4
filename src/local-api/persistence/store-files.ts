import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { apiTime, type Clock, KubelingError, type LockDeps, withLockFile } from '../../lib/index.ts';
import { temporaryPathOf } from './worker/schema.ts';

/** Secrets are in the file: nobody else may enter its directory. */
export async function prepareDirectory(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await chmod(dirname(path), 0o700);
  } catch (cause) {
    throw new KubelingError('STORE_OPEN', `Cannot open the store ${path} as its directory cannot be made`, {
      cause,
    });
  }
}

/**
 * Closes the file to others; SQLite gives its side file the same mode. One that is not there is begun under another name, as
 * whatever has the file's own name must be whole: so a file that was emptied is not taken for a new one.
 */
export async function prepareFile(path: string): Promise<void> {
  try {
    if ((await sizeOf(path)) !== undefined) return await chmod(path, 0o600);
    for (const part of ['', '-journal']) await rm(temporaryPathOf(path) + part, { force: true });
    await (await open(temporaryPathOf(path), 'wx', 0o600)).close();
  } catch (cause) {
    throw new KubelingError('STORE_OPEN', `Cannot open the store ${path} as its file cannot be made`, {
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

/** The file, and what it has written ahead of itself. The first without the second is an older state. */
const parts = ['', '-wal'];

/**
 * A copy beside the file, for whoever tries to mend it. Of the same state there is never a second copy, however often
 * it is asked for: the name tells the state.
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
  // A copy of another size was cut short.
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

/** Takes the file out of the way and answers where it is now; undefined when there was nothing in it. */
export async function setAside(path: string, clock: Clock): Promise<string | undefined> {
  if (((await sizeOf(path)) ?? 0) === 0 && ((await sizeOf(`${path}-wal`)) ?? 0) === 0) {
    for (const part of parts) await rm(path + part, { force: true });
    return undefined;
  }
  const base = `${path}.set-aside-${apiTime(clock.now()).replaceAll(/[-:]/g, '')}`;
  let aside = base;
  for (let count = 2; (await sizeOf(aside)) !== undefined; count++) aside = `${base}-${count}`;
  // In this order: cut short, a lone side file is no state, but a file without its own would be an older one.
  for (const part of parts) {
    if ((await sizeOf(path + part)) !== undefined) await rename(path + part, aside + part);
  }
  await rm(`${path}-shm`, { force: true });
  await syncDirectory(dirname(path));
  return aside;
}

/** Takes the lock file and answers what gives it back. Fails with LOCK_HELD when another process has it. */
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
