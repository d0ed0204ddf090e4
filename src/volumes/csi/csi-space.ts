import { posix } from 'node:path';
import type { VolumeFiles, VolumeSpace } from '../files/volume-files.ts';
import { isDriverMissing } from './csi-client.ts';
import type { CsiDrivers } from './csi-drivers.ts';
import { type CsiPaths, volumePathsIn } from './csi-paths.ts';
import type { NodeGetVolumeStatsResponse, VolumeUsage } from './gen/node.ts';
import { isValid, readVolumeData, type VolumeData } from './volume-data.ts';

/** Stats of a CSI volume; values that the driver does not report are undefined. */
export interface CsiSpace extends Partial<VolumeSpace> {
  readonly health?: 'normal' | 'abnormal';
}

export interface CsiSpaceDeps {
  readonly files: VolumeFiles;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  readonly paths: CsiPaths;
}

/** Returns the stats of the CSI volume mounted at the path; empty when its driver reports none. */
export async function csiSpaceAt(
  { files, drivers, paths }: CsiSpaceDeps,
  mount: string,
  signal: AbortSignal,
): Promise<CsiSpace> {
  const data = await readVolumeData(files, volumePathsIn(posix.dirname(mount), 'mount'));
  if (!isValid(data)) return {};
  const staged = data.mode === 'Persistent' ? paths.stagedVolume(data.driver, data.handle).mount : '';
  return await queryVolumeStats(drivers, data, { shown: mount, staged }, signal);
}

/**
 * Returns the stats of a volume with the given publish path and, for drivers with the
 * STAGE_UNSTAGE_VOLUME capability, staging path.
 */
export async function queryVolumeStats(
  drivers: Pick<CsiDrivers, 'get'>,
  { driver, handle, origin }: Pick<VolumeData, 'driver' | 'handle' | 'origin'>,
  { shown, staged }: { readonly shown: string; readonly staged: string },
  signal: AbortSignal,
): Promise<CsiSpace> {
  try {
    const { client, can } = drivers.get(driver, origin);
    if (!can.has('GET_VOLUME_STATS')) return {};
    const stagingTargetPath = can.has('STAGE_UNSTAGE_VOLUME') ? staged : '';
    const response = await client.stats({ volumeId: handle, volumePath: shown, stagingTargetPath }, signal);
    return { ...spaceOf(response), ...(can.has('VOLUME_CONDITION') ? healthOf(response) : {}) };
  } catch (error) {
    if (isDriverMissing(error)) return {};
    throw error;
  }
}

function spaceOf({ usage }: NodeGetVolumeStatsResponse): Partial<VolumeSpace> {
  const [bytes, inodes] = [find(usage, 'BYTES'), find(usage, 'INODES')];
  return {
    ...(bytes && {
      capacityBytes: Number(bytes.total),
      availableBytes: Number(bytes.available),
      usedBytes: Number(bytes.used),
    }),
    ...(inodes && {
      inodes: Number(inodes.total),
      inodesFree: Number(inodes.available),
      inodesUsed: Number(inodes.used),
    }),
  };
}

function find(usage: readonly VolumeUsage[], unit: VolumeUsage['unit']): VolumeUsage | undefined {
  return usage.find((entry) => entry.unit === unit);
}

function healthOf({ volumeCondition }: NodeGetVolumeStatsResponse): Pick<CsiSpace, 'health'> {
  if (volumeCondition === undefined) return {};
  return { health: volumeCondition.abnormal ? 'abnormal' : 'normal' };
}
