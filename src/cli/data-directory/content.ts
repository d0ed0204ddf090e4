import { readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { KubelingError, readJsonFile, writeJsonAtomic } from '../../lib/index.ts';
import { type DataDirectory, defaultDataDirectory } from './data-directory.ts';

/**
 * Saves the names of the entries that exist when kubeling uses a directory for the first time. Call
 * it with the lock held and before anything is created. Rejects with HOME_UNUSABLE where another
 * kubelet or containerd has its data.
 */
export async function claimDataDirectory(home: DataDirectory): Promise<void> {
  if (await isThere(home.claimFile)) return;
  const before = await namesBefore(home);
  const taken = before.length === 0 ? undefined : await foreignEntry(home);
  if (taken !== undefined)
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot use the data directory ${home.dataDir}: another kubelet or containerd has its data there (${taken}). Choose another directory with --data-dir`,
    );
  await writeJsonAtomic(home.claimFile, { before }, { mode: 0o600 });
}

/** Whether kubeling ever used the directory; any other directory must not be cleaned up. */
export async function isDataDirectory(home: DataDirectory): Promise<boolean> {
  if (home.dataDir === defaultDataDirectory) return true;
  const signs = [home.claimFile, home.stateFile];
  return (await Promise.all(signs.map(isThere))).includes(true);
}

/**
 * Removes the directory, except for the entries that existed before kubeling used it. Returns the
 * names of those.
 */
export async function removeDataDirectory(home: DataDirectory): Promise<readonly string[]> {
  const before = await readBefore(home);
  const found = await readdir(home.dataDir);
  const kept = found.filter((name) => before.has(name));
  if (kept.length === 0) {
    await rm(home.dataDir, { recursive: true, force: true });
    return [];
  }
  // The list is removed last, so that an interrupted removal can be repeated.
  const last = basename(home.claimFile);
  const ours = found.filter((name) => !before.has(name) && name !== last);
  for (const name of [...ours, last]) await rm(join(home.dataDir, name), { recursive: true, force: true });
  return kept;
}

/**
 * Entries that only another kubelet or containerd creates. Configuration may exist before the first
 * start.
 */
async function foreignEntry({ dataDir, rootDir }: DataDirectory): Promise<string | undefined> {
  const signs = [join(rootDir, 'pods'), join(dataDir, 'containerd', 'io.containerd.metadata.v1.bolt')];
  for (const sign of signs) if (await isThere(sign)) return sign;
  return undefined;
}

async function namesBefore(home: DataDirectory): Promise<readonly string[]> {
  // Created by kubeling, or by an earlier version that saved no list.
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
  throw new KubelingError('FILE_CORRUPT', 'it must list the names that existed before');
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
