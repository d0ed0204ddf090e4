import { KubelingError } from '../../lib/index.ts';

/** The name of a cgroup, part by part from the root; each driver derives its own path from it. */
export type CgroupName = readonly string[];
export type CgroupDriver = 'cgroupfs' | 'systemd';

/**
 * Creates a cgroup name; throws CGROUP_NAME. A part must not contain an underscore: slice names of
 * systemd contain an underscore for each dash of a part, and the part must be recoverable from
 * them.
 */
export function cgroupName(base: CgroupName, ...parts: readonly string[]): CgroupName {
  for (const part of parts) {
    if (part !== '' && !/[/_]/.test(part)) continue;
    throw new KubelingError(
      'CGROUP_NAME',
      `Cannot name a cgroup as each part must be text without "/" and "_": current value is ${JSON.stringify(part)}`,
    );
  }
  return [...base, ...parts];
}

/** Returns the path of the cgroup relative to the root of each controller tree. */
export function cgroupPath(name: CgroupName, driver: CgroupDriver): string {
  return driver === 'systemd' ? systemdPath(name) : `/${name.join('/')}`;
}

/** The name of the cgroup of all pods. */
export function kubepodsName(root: CgroupName): CgroupName {
  return cgroupName(root, 'kubepods');
}

/**
 * Returns the path of kubepods relative to the root of each controller tree; it includes the
 * configured cgroup root.
 */
export function kubepodsPath(root: string, driver: CgroupDriver): string {
  return cgroupPath(kubepodsName(parseCgroupPath(root, driver)), driver);
}

/** Returns the systemd slice units of the cgroup and its parent. */
export function sliceUnits(name: CgroupName): { readonly unit: string; readonly parent: string } {
  return { unit: sliceUnit(name), parent: sliceUnit(name.slice(0, -1)) };
}

/** Parses the path of a cgroup to its name. */
export function parseCgroupPath(path: string, driver: CgroupDriver): CgroupName {
  if (driver === 'cgroupfs') return path.split('/').filter((part) => part !== '');
  const slice = path.slice(path.lastIndexOf('/') + 1).replace(/\.slice$/, '');
  return slice === '' || slice === '-' ? [] : slice.split('-').map((part) => part.replaceAll('_', '-'));
}

/**
 * The name of a slice unit consists of the name of the parent slice and the last part of the cgroup
 * name.
 */
function systemdPath(name: CgroupName): string {
  return `/${name.map((_, index) => sliceUnit(name.slice(0, index + 1))).join('/')}`;
}

function sliceUnit(name: CgroupName): string {
  return name.length === 0 ? '-.slice' : `${name.map((part) => part.replaceAll('-', '_')).join('-')}.slice`;
}
