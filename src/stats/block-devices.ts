import { type CgroupHost, type FileSystemSpace, type Mount, mountOf, parseMountinfo } from '../lib/index.ts';
import type { Measure } from './cgroup/cgroup-measures.ts';

/** A block device of the machine. */
export interface BlockDevice {
  /** The device number, such as 8:0. */
  readonly id: string;
  /** The path, such as /dev/sda. */
  readonly device: string;
  readonly counts: readonly number[];
  /** All mounts of the machine, to map paths to devices. */
  readonly mounts: readonly Mount[];
}

/** The columns of /proc/diskstats in order; see the kernel's Documentation/admin-guide/iostats. */
const counted = [
  ['fs_reads_total', 1],
  ['fs_reads_merged_total', 1],
  ['fs_sector_reads_total', 1],
  ['fs_read_seconds_total', 1_000],
  ['fs_writes_total', 1],
  ['fs_writes_merged_total', 1],
  ['fs_sector_writes_total', 1],
  ['fs_write_seconds_total', 1_000],
  ['fs_io_current', 1],
  ['fs_io_time_seconds_total', 1_000],
  ['fs_io_time_weighted_seconds_total', 1_000],
] as const;

export async function blockDevices(
  host: Pick<CgroupHost, 'read' | 'mountinfo'>,
): Promise<readonly BlockDevice[]> {
  const text = await host.read('/proc/diskstats').catch(() => '');
  const mounts = parseMountinfo(await host.mountinfo().catch(() => ''));
  return text.split('\n').flatMap((line) => {
    const [major = '', minor = '', name = '', ...counts] = line.trim().split(/\s+/);
    return name === ''
      ? []
      : [{ id: `${major}:${minor}`, device: `/dev/${name}`, counts: counts.map(Number), mounts }];
  });
}

/** Returns the device number of the first file system. */
export function mainDevice(
  [first]: readonly BlockDevice[],
  disks: ReadonlyMap<string, FileSystemSpace>,
): string | undefined {
  const [path] = disks.keys();
  return path === undefined ? undefined : mountOf(path, first?.mounts ?? [])?.device;
}

/** Returns the metrics of mounted devices. */
export function diskMeasures(
  devices: readonly BlockDevice[],
  disks: ReadonlyMap<string, FileSystemSpace>,
): readonly Measure[] {
  const [{ mounts } = { mounts: [] }] = devices;
  const mounted = new Set(mounts.map(({ device }) => device));
  const spaces = new Map([...disks].map(([path, space]) => [mountOf(path, mounts)?.device, space]));
  return devices
    .filter(({ id }) => mounted.has(id))
    .flatMap(({ id, device, counts }) => {
      const labels = { device };
      const space = spaces.get(id);
      return [
        ...counted.map(([name, per], index) => ({ name, labels, value: scaled(counts[index], per) })),
        { name: 'fs_usage_bytes', labels, value: space?.usedBytes },
        { name: 'fs_limit_bytes', labels, value: space?.capacityBytes },
        { name: 'fs_inodes_total', labels, value: space?.inodes },
        { name: 'fs_inodes_free', labels, value: space?.inodesFree },
      ];
    });
}

function scaled(value: number | undefined, per: number): number | undefined {
  return value === undefined ? undefined : value / per;
}
