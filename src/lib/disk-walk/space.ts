import { type StatsFs, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { FileSystemSpace } from './messages.ts';

/**
 * The space of the file system at the path. Blocks the thread, so use it only for local file
 * systems.
 */
export function spaceAt(path: string): FileSystemSpace {
  return spaceOf(statfsSync(path));
}

export function spaceOf({ blocks, bfree, bavail, bsize, files, ffree }: StatsFs): FileSystemSpace {
  return {
    capacityBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    usedBytes: (blocks - bfree) * bsize,
    inodes: files,
    inodesFree: ffree,
    inodesUsed: files - ffree,
  };
}

/**
 * For a directory with a project quota, statfs returns the quota's limit and its unused part.
 * statfs of the parent directory returns the space of the file system.
 */
export function spaceAndQuota(path: string): {
  readonly space: FileSystemSpace;
  readonly quotaBytes?: number;
} {
  const space = spaceAt(path);
  const above = dirname(path);
  if (above === path || statSync(path).dev !== statSync(above).dev) return { space };
  const around = spaceAt(above);
  return around.capacityBytes === space.capacityBytes
    ? { space }
    : { space: around, quotaBytes: space.usedBytes };
}
