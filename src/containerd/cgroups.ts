import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type { Clock } from '../lib/index.ts';
import type { Mount, Removal } from './mounts.ts';

/** The mounted hierarchies that show the whole tree: one for each controller, or one for all. */
export function cgroupHierarchies(mounts: readonly Mount[]): readonly string[] {
  const found = mounts.filter((mount) => mount.fsType === 'cgroup' || mount.fsType === 'cgroup2');
  return [...new Set(found.filter((mount) => mount.root === '/').map((mount) => mount.mountPoint))];
}

/**
 * The cgroup that a runtime spec's cgroupsPath names: a path of its own, or, where systemd manages cgroups,
 * SLICE:PREFIX:NAME for a scope in a slice whose name spells its parents.
 */
export function cgroupOf(cgroupsPath: string): string {
  const [slice = '', prefix = '', name] = cgroupsPath.split(':');
  if (name === undefined) return normalize(`/${cgroupsPath}`);
  const parts = slice.replace(/\.slice$/, '').split('-');
  const slices = parts.map((_, index) => `${parts.slice(0, index + 1).join('-')}.slice`);
  return normalize(`/${slices.join('/')}/${prefix}-${name}.scope`);
}

/** Every process in the cgroup and below it, in any hierarchy. */
export async function cgroupProcesses(hierarchies: readonly string[], cgroup: string): Promise<number[]> {
  const pids = new Set<number>();
  for (const hierarchy of hierarchies) {
    for (const dir of await tree(join(hierarchy, cgroup))) {
      const text = await readFile(join(dir, 'cgroup.procs'), 'utf8').catch(() => '');
      for (const line of text.split('\n')) if (line !== '') pids.add(Number(line));
    }
  }
  return [...pids];
}

/** Removes the cgroup and all below it in every hierarchy. One that is not there is done already. */
export async function removeCgroup(
  hierarchies: readonly string[],
  cgroup: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Removal> {
  const removed: string[] = [];
  const problems: string[] = [];
  for (const hierarchy of hierarchies) {
    for (const dir of (await tree(join(hierarchy, cgroup))).toReversed()) {
      const error = await removeDirectory(dir, clock, signal);
      if (error === undefined) removed.push(dir);
      else problems.push(`Cannot remove the cgroup ${dir}: ${error.message}`);
    }
  }
  return { removed, problems };
}

/** Removes the cgroup where it has neither processes nor children; answers where it did. */
export async function removeIfEmpty(hierarchies: readonly string[], cgroup: string): Promise<string[]> {
  const removed: string[] = [];
  for (const dir of hierarchies.map((hierarchy) => join(hierarchy, cgroup))) {
    const isGone = await rmdir(dir).then(
      () => true,
      () => false,
    );
    if (isGone) removed.push(dir);
  }
  return removed;
}

/** The kernel may hold a cgroup for an instant after its last process has ended. */
async function removeDirectory(dir: string, clock: Clock, signal: AbortSignal): Promise<Error | undefined> {
  for (let delayMs = 1; ; delayMs *= 2) {
    try {
      await rmdir(dir);
      return undefined;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return undefined;
      if (code !== 'EBUSY' || delayMs > 512) return error as Error;
    }
    await clock.sleep(delayMs, signal);
  }
}

/** The directory and all below it, parents first; nothing when it is not there. */
async function tree(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined) return [];
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => join(dir, entry.name));
  return [dir, ...(await Promise.all(children.map(tree))).flat()];
}
