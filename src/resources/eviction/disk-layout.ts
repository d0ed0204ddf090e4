import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import type { DiskLayout } from './eviction-stats.ts';

/** The parts of a pod's disk usage: writable layers (`rootfs`), container logs and volumes. */
export type DiskPart = 'rootfs' | 'logs' | 'volumes';

/** Resources that can be reclaimed without evicting pods. */
export type ReclaimStep = 'dead-containers' | 'unused-images';

type Disk = 'nodefs' | 'imagefs' | 'containerfs';

const everything: readonly DiskPart[] = ['rootfs', 'logs', 'volumes'];
const parts: Readonly<Record<DiskLayout, Readonly<Record<Disk, readonly DiskPart[]>>>> = {
  single: { nodefs: everything, imagefs: everything, containerfs: everything },
  dedicated: { nodefs: ['logs', 'volumes'], imagefs: ['rootfs'], containerfs: ['rootfs'] },
  split: { nodefs: everything, imagefs: [], containerfs: everything },
};

const both: readonly ReclaimStep[] = ['dead-containers', 'unused-images'];
const steps: Readonly<Record<DiskLayout, Readonly<Record<Disk, readonly ReclaimStep[]>>>> = {
  single: { nodefs: both, imagefs: both, containerfs: both },
  dedicated: { nodefs: [], imagefs: both, containerfs: both },
  split: { nodefs: ['dead-containers'], imagefs: ['unused-images'], containerfs: ['dead-containers'] },
};

/**
 * Returns the parts of a pod's disk usage that count for the signal; empty for signals that are not
 * about disks.
 */
export function diskParts(signal: EvictionSignal, layout: DiskLayout): readonly DiskPart[] {
  const disk = diskOf(signal);
  return disk === undefined ? [] : parts[layout][disk];
}

/** Returns the steps to reclaim disk space without evicting pods, in order. */
export function reclaimSteps(signal: EvictionSignal, layout: DiskLayout): readonly ReclaimStep[] {
  const disk = diskOf(signal);
  return disk === undefined ? [] : steps[layout][disk];
}

/**
 * Replaces the thresholds of containerfs by those of the file system with which containerfs is
 * identical, and returns all thresholds.
 */
export function withContainerDisk(
  thresholds: readonly EvictionThreshold[],
  layout: DiskLayout,
): readonly EvictionThreshold[] {
  const same = layout === 'dedicated' ? 'imagefs' : 'nodefs';
  const written = thresholds.filter(({ signal }) => diskOf(signal) !== 'containerfs');
  const copies = written.flatMap((threshold): readonly EvictionThreshold[] => {
    if (diskOf(threshold.signal) !== same) return [];
    const signal = threshold.signal.endsWith('.inodesFree')
      ? 'containerfs.inodesFree'
      : 'containerfs.available';
    return [{ ...threshold, signal }];
  });
  return [...written, ...copies];
}

function diskOf(signal: EvictionSignal): Disk | undefined {
  const [name] = signal.split('.');
  return name === 'nodefs' || name === 'imagefs' || name === 'containerfs' ? name : undefined;
}
