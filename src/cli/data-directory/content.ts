import { readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { KubelingError, readJsonFile, writeJsonAtomic } from '../../lib/index.ts';
import { type DataDirectory, defaultDataDirectory } from './data-directory.ts';

/**
 * Notes, the first time a kubeling is up in a directory, what others have put there before. Call it with the lock held
 * and before anything else is made. Rejects with HOME_UNUSABLE where another kubelet or containerd keeps its data.
 */
export async function claimDataDirectory(home: DataDirectory): Promise<void> {
  if (await isThere(home.claimFile)) return;
  const before = await namesBefore(home);
  const taken = before.length === 0 ? undefined : await foreignEntry(home);
  if (taken !== undefined)
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot use the data directory ${home.dataDir} as somebody else's data are in it (${taken}): choose another one`,
    );
  await writeJsonAtomic(home.claimFile, { before }, { mode: 0o600 });
}

/** Whether a kubeling has ever been up there; any other directory is not for us to clean up. */
export async function isDataDirectory(home: DataDirectory): Promise<boolean> {
  if (home.dataDir === defaultDataDirectory) return true;
  const signs = [home.claimFile, home.stateFile];
  return (await Promise.all(signs.map(isThere))).includes(true);
}

/** Removes the directory, or all but what was there before us. Answers the names that stay. */
export async function removeDataDirectory(home: DataDirectory): Promise<readonly string[]> {
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

/** What only another kubelet or containerd leaves; configuration may be put in place before the first time. */
async function foreignEntry({ dataDir, rootDir }: DataDirectory): Promise<string | undefined> {
  const signs = [join(rootDir, 'pods'), join(dataDir, 'containerd', 'io.containerd.metadata.v1.bolt')];
  for (const sign of signs) if (await isThere(sign)) return sign;
  return undefined;
}

async function namesBefore(home: DataDirectory): Promise<readonly string[]> {
  // Ours for as long as it is there, or left by an earlier kubeling that kept no list.
  if (home.dataDir === defaultDataDirectory || (await isThere(home.stateFile))) return [];
  const lock = basename(home.lockFile);
  return (await readdir(home.dataDir)).filter((name) => name !== lock && !name.startsWith(`${lock}.`));
}

async function readBefore({ claimFile }: DataDirectory): Promise<ReadonlySet<string>> {
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
