import { join, normalize } from 'node:path';
import { type Clock, type Mount, realCgroupHost, removeCgroup } from '../lib/index.ts';
import { type Removal, readMounts } from './mounts.ts';

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

/** The directories of the cgroup, one in each hierarchy. */
export function cgroupDirectories(hierarchies: readonly string[], cgroup: string): readonly string[] {
  return hierarchies.map((hierarchy) => join(hierarchy, cgroup));
}

/** Removes a cgroup at the top with all below it from every hierarchy, under both names that the drivers give it. */
export async function removeTopCgroup(
  cgroup: string,
  { clock, procDir }: { readonly clock: Clock; readonly procDir: string },
  signal: AbortSignal,
): Promise<Removal> {
  const hierarchies = cgroupHierarchies(await readMounts(procDir));
  const dirs = [cgroup, `${cgroup}.slice`].flatMap((name) => cgroupDirectories(hierarchies, name));
  return await removeCgroup(realCgroupHost(), dirs, clock, signal);
}
