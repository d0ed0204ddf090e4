import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  describeError,
  loopDevicesOf,
  type Mount,
  mountArguments,
  parseMountinfo,
  type Random,
  randomHex,
  umountArguments,
} from '../lib/index.ts';
import type { Run } from './machine.ts';

/** The removed items, and the failures with their reasons. */
export interface Removal {
  readonly removed: readonly string[];
  readonly problems: readonly string[];
}

export async function readMounts(procDir: string): Promise<readonly Mount[]> {
  return parseMountinfo(await readFile(join(procDir, 'self/mountinfo'), 'utf8'));
}

/**
 * Returns the mounts strictly below the directory: the deepest first, and the topmost first at one
 * mount point.
 */
export function mountsBelow(mounts: readonly Mount[], dir: string): string[] {
  const depth = (path: string) => path.split('/').length;
  return mounts
    .map((mount) => mount.mountPoint)
    .filter((path) => path.startsWith(`${dir}/`))
    .toReversed()
    .toSorted((a, b) => depth(b) - depth(a));
}

/**
 * Unmounts everything strictly below the directory; busy mounts are detached. A mount at the
 * directory itself is kept, because it is the user's disk.
 */
export async function unmountBelow(dir: string, deps: MountDeps, signal: AbortSignal): Promise<Removal> {
  const removed: string[] = [];
  const problems: string[] = [];
  const paths = mountsBelow(await readMounts(deps.procDir), dir);
  await retainElsewhere(paths, deps, signal);
  for (const path of paths) {
    if (deps.keep?.includes(path)) continue;
    try {
      await unmount(path, deps, signal);
      removed.push(path);
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`Cannot unmount ${path}: ${describeError(error)}`);
    }
  }
  return { removed, problems };
}

/**
 * Makes mounts that contain other mounts private, so that unmounting the inner mounts here does not
 * unmount them in other mount namespaces, such as shared volumes of other programs.
 */
async function retainElsewhere(
  paths: readonly string[],
  { run }: MountDeps,
  signal: AbortSignal,
): Promise<void> {
  for (const path of paths) {
    if (!paths.some((other) => other.startsWith(`${path}/`))) continue;
    const args = mountArguments({ flags: ['--make-rprivate'], target: path });
    await run('mount', args, signal).catch(() => signal.throwIfAborted());
  }
}

export interface MountDeps {
  readonly run: Run;
  readonly procDir: string;
  readonly sysDir: string;
  /** Mount points that must not be unmounted. */
  readonly keep?: readonly string[];
}

async function unmount(
  path: string,
  { run, sysDir }: Pick<MountDeps, 'run' | 'sysDir'>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await run('umount', umountArguments([], path), signal);
  } catch {
    signal.throwIfAborted();
    // A loop device whose backing file is mounted at this path is detached first: it keeps the
    // mount busy, and without the detachment neither the mount nor the device would ever be
    // released.
    for (const device of await loopDevicesOf(path, sysDir)) await run('losetup', ['-d', device], signal);
    await run('umount', umountArguments(['-l'], path), signal);
  }
}

export interface OverlayProbeDeps {
  readonly run: Run;
  readonly sysDir: string;
  readonly random: Random;
}

/** Whether the file system of the directory supports overlay mounts. */
export async function canMountOverlay(
  dir: string,
  { run, sysDir, random }: OverlayProbeDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const probe = join(dir, `overlay-probe-${randomHex(random, 8)}`);
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(probe, name));
  for (const path of [lower, upper, work, merged]) await mkdir(String(path), { recursive: true });
  try {
    const layers = { lowerdir: lower, upperdir: upper, workdir: work };
    const options = Object.entries(layers).map(([name, path]) => `${name}=${escapeOption(path)}`);
    const args = mountArguments({ type: 'overlay', options, source: 'overlay', target: String(merged) });
    await run('mount', args, signal);
    await unmount(String(merged), { run, sysDir }, signal);
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
}

/** Escapes a mount option, in which a comma ends the option and a colon ends a layer. */
function escapeOption(path: string | undefined): string {
  return String(path).replaceAll(/[\\,:]/g, '\\$&');
}
