import { join, normalize } from 'node:path';
import { type Clock, type Mount, realCgroupHost, removeCgroup } from '../lib/index.ts';
import { type Removal, readMounts } from './mounts.ts';

/**
 * Returns the mount points of the cgroup hierarchies that are mounted whole and not as a subtree:
 * one per controller on cgroup v1, one on v2.
 */
export function cgroupHierarchies(mounts: readonly Mount[]): readonly string[] {
  const found = mounts.filter((mount) => mount.fsType === 'cgroup' || mount.fsType === 'cgroup2');
  return [...new Set(found.filter((mount) => mount.root === '/').map((mount) => mount.mountPoint))];
}

/**
 * Returns the cgroup for the cgroupsPath of a runtime spec: a path, or with the systemd driver
 * SLICE:PREFIX:NAME for a scope in a slice.
 */
export function cgroupOf(cgroupsPath: string): string {
  const [slice = '', prefix = '', name] = cgroupsPath.split(':');
  if (name === undefined) return normalize(`/${cgroupsPath}`);
  const parts = slice.replace(/\.slice$/, '').split('-');
  const slices = parts.map((_, index) => `${parts.slice(0, index + 1).join('-')}.slice`);
  return normalize(`/${slices.join('/')}/${prefix}-${name}.scope`);
}

/** Returns the directories of a cgroup, one per hierarchy. */
export function cgroupDirectories(hierarchies: readonly string[], cgroup: string): readonly string[] {
  return hierarchies.map((hierarchy) => join(hierarchy, cgroup));
}

/**
 * Removes a top-level cgroup with all its children from every hierarchy, under the names of both
 * cgroup drivers.
 */
export async function removeTopCgroup(
  cgroup: string,
  { clock, procDir }: { readonly clock: Clock; readonly procDir: string },
  signal: AbortSignal,
): Promise<Removal> {
  const hierarchies = cgroupHierarchies(await readMounts(procDir));
  const dirs = [cgroup, `${cgroup}.slice`].flatMap((name) => cgroupDirectories(hierarchies, name));
  return await removeCgroup(realCgroupHost(), dirs, clock, signal);
}
