import { type StatsFs, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { FileSystemSpace } from './messages.ts';

/** Of the file system there. For what the kernel answers by itself only: this waits in it. */
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
 * Where a directory has a limit as a project of its file system, that file system tells of it what it tells of a whole:
 * the limit, and what is left of it. Seen from the directory above it is the file system again.
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
