import { type Dirent, readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errnoOf, KubelingError } from '../lib/index.ts';
import { mountIdOf, openPlace, type Place, placeFlags, wayFlags } from './places.ts';
import { callsToChange, isQuickToLookAt } from './quick-files.ts';

/** A directory with all that is in it, but nothing that is mounted there. */
export async function removeTree(directory: string): Promise<void> {
  const parent = await unlessGone(() => openPlace(dirname(directory), wayFlags));
  if (parent === undefined) return;
  await using above = parent;
  await removeDirectory(above, basename(directory), directory);
}

/** Each step is taken from the handle of the one before, so that nothing that becomes a link meanwhile leads elsewhere. */
async function removeDirectory(above: Place, name: string, shown: string): Promise<void> {
  const path = `/proc/self/fd/${above.fd}/${name}`;
  {
    const opened = await unlessGone(() => openPlace(path, placeFlags, shown));
    if (opened === undefined) return;
    await using place = opened;
    if (mountIdOf(place) !== mountIdOf(above)) {
      throw new KubelingError('VOLUME_REMOVE', `cannot delete directory ${shown}: it is a mount point`);
    }
    await removeContent(place, shown);
  }
  await unlessGone(() => callsToChange(shown).rmdir(path));
}

async function removeContent(place: Place, shown: string): Promise<void> {
  const inside = `/proc/self/fd/${place.fd}`;
  for (const entry of await entriesOf(inside, shown)) {
    if (entry.isDirectory()) await removeDirectory(place, entry.name, join(shown, entry.name));
    else await removeFile(`${inside}/${entry.name}`, join(shown, entry.name));
  }
}

async function entriesOf(path: string, shown: string): Promise<readonly Dirent[]> {
  const options = { withFileTypes: true } as const;
  return isQuickToLookAt(shown) ? readdirSync(path, options) : await readdir(path, options);
}

/** What is mounted on a file keeps it, as the kernel sees to. */
async function removeFile(path: string, shown: string): Promise<void> {
  try {
    await unlessGone(() => callsToChange(shown).unlink(path));
  } catch (error) {
    if (errnoOf(error) !== 'EBUSY') throw error;
    throw new KubelingError('VOLUME_REMOVE', `cannot delete ${shown}: it is a mount point`);
  }
}

export async function unlessGone<T>(act: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    return unlessMissing(error);
  }
}

export function unlessMissing(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT') throw error;
}
