import type { BoundVolume, LocalSource } from './bound-volume.ts';
import type { GrowingVolume } from './expansions.ts';
import type { LocalVolumes } from './local-volumes.ts';
import { splitMountOptions } from './mount-options.ts';
import { localPlugin } from './volume-metrics.ts';

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
