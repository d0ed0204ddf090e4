import type { BoundVolume, LocalSource } from '../claims/bound-volume.ts';
import type { GrowingVolume } from '../claims/expansions.ts';
import { splitMountOptions } from '../manager/mount-options.ts';
import { localPlugin } from '../manager/volume-metrics.ts';
import type { LocalVolumes } from './local-volumes.ts';

/** Of all volumes of all kinds. */
export function localKey(name: string): string {
  return `${localPlugin.name}/${name}`;
}

/**
 * A volume of the machine itself that may have become larger. A device or a directory is as large as it is: only the
 * claim has to be told. What is on a disk follows the disk.
 */
export function localGrowth(
  local: Pick<LocalVolumes, 'grow'> | undefined,
  bound: Omit<BoundVolume, 'source'>,
  { path, fsType }: LocalSource,
): GrowingVolume {
  const { name, claim, mountOptions, mode } = bound;
  const readOnly = bound.readOnly || splitMountOptions(mountOptions).includes('ro');
  const expand = async (_bytes: bigint, signal: AbortSignal) => {
    if (mode !== 'block') await local?.grow({ ...bound, path, fsType }, signal);
  };
  return { name, claim, readOnly, key: localKey(name), plugin: localPlugin, expand };
}
