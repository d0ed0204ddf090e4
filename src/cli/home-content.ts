import { readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { KubelingError, readJsonFile, writeJsonAtomic } from '../lib/index.ts';
import { defaultDataDirectory, type Home } from './home.ts';

/**
 * Notes, the first time a kubeling is up in a directory, what others have put there before. Call it with the lock held
 * and before anything else is made. Rejects with HOME_UNUSABLE for a directory where others keep what we would.
 */
export async function claimHome(home: Home): Promise<void> {
  if (await isThere(home.claimFile)) return;
  const before = await namesBefore(home);
  const taken = [basename(home.rootDir), basename(home.api), 'containerd'];
  const found = before.filter((name) => taken.includes(name));
  if (found.length > 0)
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot use the data directory ${home.dataDir} as somebody else has made ${found.join(', ')} there: choose one of its own`,
    );
  await writeJsonAtomic(home.claimFile, { before }, { mode: 0o600 });
}

/** Whether a kubeling has ever been up there; any other directory is not for us to clean up. */
export async function isClaimed(home: Home): Promise<boolean> {
  if (home.dataDir === defaultDataDirectory) return true;
  const signs = [home.claimFile, home.stateFile];
  return (await Promise.all(signs.map(isThere))).includes(true);
}

/** Removes the directory, or all but what was there before us. Answers the names that stay. */
export async function removeHome(home: Home): Promise<readonly string[]> {
  const before = await readBefore(home);
  const found = await readdir(home.dataDir);
  const kept = found.filter((name) => before.has(name));
  if (kept.length === 0) {
    await rm(home.dataDir, { recursive: true, force: true });
    return [];
  }
  // The list goes last: a removal that was cut short can be asked for again.
  const last = basename(home.claimFile);
  const ours = found.filter((name) => !before.has(name) && name !== last);
  for (const name of [...ours, last]) await rm(join(home.dataDir, name), { recursive: true, force: true });
  return kept;
}

async function namesBefore(home: Home): Promise<readonly string[]> {
  // Ours for as long as it is there, or left by an earlier kubeling that kept no list.
  if (home.dataDir === defaultDataDirectory || (await isThere(home.stateFile))) return [];
  const lock = basename(home.lockFile);
  return (await readdir(home.dataDir)).filter((name) => name !== lock && !name.startsWith(`${lock}.`));
}

async function readBefore({ claimFile }: Home): Promise<ReadonlySet<string>> {
  if (!(await isThere(claimFile))) return new Set();
  return await readJsonFile(claimFile, { check: asNames });
}

function asNames(value: unknown): ReadonlySet<string> {
  const { before } = value as { readonly before?: unknown };
  if (Array.isArray(before) && before.every((name) => typeof name === 'string')) return new Set(before);
  throw new KubelingError('FILE_CORRUPT', 'it must list the names that were there before');
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
