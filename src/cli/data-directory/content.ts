import { lstat, readdir, rm, rmdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  clearingInodeFlags,
  describeError,
  errnoOf,
  KubelingError,
  readJsonFile,
  removeTree,
  writeJsonAtomic,
} from '../../lib/index.ts';
import { type DataDirectory, defaultDataDirectory } from './data-directory.ts';

/**
 * Records the names of existing entries when kubeling first uses a directory. Must be called while
 * its lock is held and before anything is created in it. Rejects with HOME_UNUSABLE if another
 * kubelet or containerd has its data there.
 */
export async function claimDataDirectory(dataDirectory: DataDirectory): Promise<void> {
  if (await exists(dataDirectory.claimFile)) return;
  const before = await namesBefore(dataDirectory);
  const foreign = before.length === 0 ? undefined : await foreignEntry(dataDirectory);
  if (foreign !== undefined)
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot use the data directory ${dataDirectory.dataDir}: another kubelet or containerd has its data there (${foreign}). Choose another directory with --data-dir`,
    );
  await writeJsonAtomic(dataDirectory.claimFile, { before }, { mode: 0o600 });
}

/** Whether kubeling has ever used the directory; other directories must not be cleaned up. */
export async function isDataDirectory(dataDirectory: DataDirectory): Promise<boolean> {
  if (dataDirectory.dataDir === defaultDataDirectory) return true;
  const signs = [dataDirectory.claimFile, dataDirectory.stateFile];
  return (await Promise.all(signs.map(exists))).includes(true);
}

export interface DataRemoval {
  /** The names of entries that were not removed because they existed before the first "up". */
  readonly retained: readonly string[];
  /** Which entries could not be removed, and why. */
  readonly problems: readonly string[];
}

/**
 * Removes the directory, except entries that existed before the first "up". After a failure it
 * continues with the other entries. The claim file is removed last and only when everything else is
 * removed, so that a later call can finish the work.
 */
export async function removeDataDirectory(dataDirectory: DataDirectory): Promise<DataRemoval> {
  const before = await readBefore(dataDirectory);
  const found = await readdir(dataDirectory.dataDir);
  const claim = basename(dataDirectory.claimFile);
  const retained = found.filter((name) => before.has(name));
  const problems: string[] = [];
  for (const name of found.filter((each) => !before.has(each) && each !== claim))
    await removeEntry(join(dataDirectory.dataDir, name)).catch((error: unknown) => {
      problems.push(`Cannot remove ${join(dataDirectory.dataDir, name)}: ${describeError(error)}`);
    });
  if (problems.length > 0) return { retained, problems };
  await rm(dataDirectory.claimFile, { force: true });
  if (retained.length === 0) await rmdir(dataDirectory.dataDir).catch(throwUnlessMountPoint);
  return { retained, problems };
}

async function removeEntry(path: string): Promise<void> {
  if ((await lstat(path)).isDirectory()) await removeTree(path);
  else await clearingInodeFlags(() => rm(path, { force: true }), [path]);
}

/** A directory that is a mount point cannot be removed; it stays and is empty. */
function throwUnlessMountPoint(error: unknown): void {
  if (errnoOf(error) !== 'EBUSY') throw error;
}

/**
 * Returns the path of an entry that shows that another kubelet or containerd has its data in the
 * directory; undefined if there is none. Configuration files of other programs are no such sign.
 */
async function foreignEntry({ dataDir, rootDir }: DataDirectory): Promise<string | undefined> {
  const signs = [join(rootDir, 'pods'), join(dataDir, 'containerd', 'io.containerd.metadata.v1.bolt')];
  for (const sign of signs) if (await exists(sign)) return sign;
  return undefined;
}

async function namesBefore(dataDirectory: DataDirectory): Promise<readonly string[]> {
  // Returns no names if kubeling created the directory itself, or if an earlier release used it
  // without saving the list of existing entries.
  if (dataDirectory.dataDir === defaultDataDirectory || (await exists(dataDirectory.stateFile))) return [];
  const lock = basename(dataDirectory.lockFile);
  return (await readdir(dataDirectory.dataDir)).filter(
    (name) => name !== lock && !name.startsWith(`${lock}.`),
  );
}

async function readBefore({ claimFile }: DataDirectory): Promise<ReadonlySet<string>> {
  if (!(await exists(claimFile))) return new Set();
  return await readJsonFile(claimFile, { check: asNames });
}

function asNames(value: unknown): ReadonlySet<string> {
  const { before } = value as { readonly before?: unknown };
  if (Array.isArray(before) && before.every((name) => typeof name === 'string')) return new Set(before);
  throw new KubelingError('FILE_CORRUPT', 'it must list the entries that existed before the first start');
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
