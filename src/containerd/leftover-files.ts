import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describeError, isProtectionError, removeTree } from '../lib/index.ts';
import { type Bundle, shimSocketName } from './bundles.ts';
import type { Layout } from './layout.ts';
import { mountsBelow, type Removal, readMounts } from './mounts.ts';

export interface TeardownOptions {
  /**
   * Whether images and other content of containerd's root directory are kept for the next start.
   */
  readonly images: 'keep' | 'remove';
}

/** Paths outside the data directory that containerd, its shims and the CNI library use. */
export interface SharedPaths {
  readonly cniResults: string;
  readonly shimSockets: string;
  readonly runcRoot: string;
}

export const defaultPaths: SharedPaths = {
  cniResults: '/var/lib/cni/results',
  shimSockets: '/run/containerd/s',
  runcRoot: '/run/containerd/runc',
};

export interface FileDeps {
  readonly layout: Layout;
  readonly places: SharedPaths;
  readonly procDir: string;
}

/**
 * Removes the private containerd's files inside and outside the data directory, except directories
 * that contain a mount.
 */
export async function removeFiles(
  bundles: readonly Bundle[],
  options: TeardownOptions,
  deps: FileDeps,
): Promise<Removal> {
  const { layout } = deps;
  const own = options.images === 'remove' ? await everythingOf(layout) : removableFiles(layout);
  const mounted = await foreignMounts(deps);
  const removed: string[] = [];
  const problems: string[] = [];
  for (const path of [...shimFiles(bundles, deps), ...(await cniResults(bundles, deps)), ...own]) {
    try {
      // A directory that contains a mount is kept: the mounted files may belong to another program.
      const held = mounted.find((mount) => `${mount}/`.startsWith(`${path}/`));
      if (held !== undefined) problems.push(`Cannot remove ${path} as ${held} is still mounted`);
      else if (await removeIfThere(path)) removed.push(path);
    } catch (error) {
      problems.push(`Cannot remove ${path}: ${describeError(error)}`);
    }
  }
  return { removed, problems };
}

/**
 * Returns the remaining mounts below the directory, except separate disks mounted at containerd's
 * root or state directory.
 */
async function foreignMounts({ layout, procDir }: FileDeps): Promise<readonly string[]> {
  const { dir, root, state } = layout;
  return mountsBelow(await readMounts(procDir), dir).filter((path) => path !== root && path !== state);
}

/** Returns the files that the next start does not need. */
function removableFiles(layout: Layout): readonly string[] {
  return [layout.state, layout.ipamDir, layout.pidFile, layout.socket, layout.ttrpcSocket];
}

/**
 * Returns all files except the lock, on which other processes may wait, and the user's registry
 * settings.
 */
async function everythingOf(layout: Layout): Promise<readonly string[]> {
  const settings = await readdir(layout.registryConfig).catch(() => []);
  const entries = (await readdir(layout.dir)).map((name) => join(layout.dir, name));
  return entries
    .filter((path) => !path.startsWith(layout.lockFile))
    .filter((path) => path !== layout.registryConfig || settings.length === 0);
}

function shimFiles(bundles: readonly Bundle[], { layout, places }: FileDeps): readonly string[] {
  return bundles.flatMap((bundle) => [
    join(places.shimSockets, shimSocketName(layout, bundle)),
    join(places.runcRoot, bundle.namespace, bundle.id),
  ]);
}

/**
 * Returns the cached CNI results of this network, and those of the loopback network of its
 * sandboxes.
 */
async function cniResults(
  bundles: readonly Bundle[],
  { layout, places }: FileDeps,
): Promise<readonly string[]> {
  const loopbacks = new Set(bundles.map(({ id }) => `cni-loopback-${id}-lo`));
  const entries = await readdir(places.cniResults).catch(() => []);
  const ours = entries.filter((name) => name.startsWith(`${layout.network}-`) || loopbacks.has(name));
  return ours.map((name) => join(places.cniResults, name));
}

/** Removes a path; returns whether it existed. */
async function removeIfThere(path: string): Promise<boolean> {
  const siblingOf = await readdir(dirname(path)).catch(() => [] as string[]);
  if (!siblingOf.includes(basename(path))) return false;
  await emptyTree(path);
  return true;
}

/** Empties and removes a directory; a mount point can only be emptied. */
async function emptyTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    // Containers may have made their files immutable, which `removeTree` handles.
    if (isProtectionError(error)) return await removeTree(path);
    const isEmptied = (error as NodeJS.ErrnoException).code === 'EBUSY' && (await readdir(path)).length === 0;
    if (!isEmptied) throw error;
  }
}
