import type { Volume } from '../../kinds/index.ts';
import { describeError, type KeyedMutex } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import { removalBlocked } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import type { ReconstructionObserver } from '../manager/volume-metrics.ts';
import { unusable } from '../projected/payload.ts';
import { isDriverMissing } from './csi-client.ts';
import type { CsiDriver } from './csi-drivers.ts';
import { type CsiVolumePaths, inlineHandle } from './csi-paths.ts';
import { isValid, keyOf, type VolumeData } from './volume-data.ts';

export interface CsiRemovalDeps {
  readonly files: VolumeFiles;
  readonly lock: KeyedMutex<string>;
  readonly driver: (what: string, data: VolumeData) => CsiDriver;
  /** Returns the volume recorded for a pod. */
  readonly recordedVolume: (uid: PodUid, name: string) => Pick<VolumeData, 'driver' | 'handle'> | undefined;
  /** Returns the boot id of the machine; empty when it is unknown. */
  readonly bootId: () => Promise<string>;
  readonly reconstruction: ReconstructionObserver;
}

export interface CsiVolumeToRemove {
  readonly uid: PodUid;
  /** Name of the PersistentVolume or of the inline volume. */
  readonly name: string;
  readonly paths: CsiVolumePaths;
  /** Content of the volume's data file. */
  readonly data: VolumeData | 'damaged' | undefined;
  /** Volumes in the pod's spec; empty when the spec is unknown. */
  readonly described: readonly Volume[];
}

/**
 * Unpublishes a CSI volume of a terminated pod. Returns the removed volume; undefined for an
 * unknown one that is not mounted. Rejects with what prevents the removal.
 */
export async function removeCsiVolume(
  deps: CsiRemovalDeps,
  volume: CsiVolumeToRemove,
  signal: AbortSignal,
): Promise<VolumeData | undefined> {
  const data = isValid(volume.data) ? volume.data : recalled(deps, volume);
  if (data === undefined) {
    await forceCleaned(deps, volume.paths);
    return undefined;
  }
  using _held = await deps.lock.acquire(keyOf(data), signal);
  const what = `the volume ${data.handle} of the CSI driver ${data.driver} at ${volume.paths.mount}`;
  try {
    const { client } = deps.driver('Unmounter.TearDownAt failed to get CSI client', data);
    await client.unpublish(data.handle, volume.paths.mount, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!isDriverMissing(error) || !(await isLeftover(deps, volume.paths, data)))
      throw unusable(`${what} cannot be unpublished: ${describeError(error)}`);
  }
  await removeVolumeDirectory(deps.files, volume.paths, data.driver);
  return data;
}

/**
 * Returns the data of the volume; uses the recorded volume or the pod's spec when the data file is
 * damaged.
 */
function recalled(
  { recordedVolume }: CsiRemovalDeps,
  { uid, name, data, described }: CsiVolumeToRemove,
): VolumeData | undefined {
  if (data !== 'damaged') return undefined;
  const recorded = recordedVolume(uid, name);
  if (recorded !== undefined) return { ...recorded, mode: 'Persistent' };
  const driver = described.find((candidate) => candidate.name === name)?.csi?.driver;
  return driver === undefined ? undefined : { driver, handle: inlineHandle(uid, name), mode: 'Ephemeral' };
}

async function forceCleaned({ files, reconstruction }: CsiRemovalDeps, paths: CsiVolumePaths): Promise<void> {
  try {
    await removeVolumeDirectory(files, paths, undefined);
    reconstruction('force-cleaned', 'success');
  } catch (error) {
    reconstruction('force-cleaned', 'failure');
    throw error;
  }
}

/**
 * Whether the volume can be removed without its driver, because only its data file is left: mounts
 * do not survive a reboot, and other kubelets remove the data file last.
 */
async function isLeftover(
  { files, bootId }: CsiRemovalDeps,
  { mount }: CsiVolumePaths,
  { boot }: VolumeData,
): Promise<boolean> {
  if ((await files.mountAt(mount)) !== 'none') return false;
  if (boot === undefined) return (await files.kindAt(mount)) === undefined;
  const now = await bootId();
  return now !== '' && boot !== now;
}

/** Matches the names of temporary files of interrupted writes. */
const leftover = /^\.kubeling-[0-9a-f]{16}\.tmp$/;

/**
 * Removes only the files of a volume directory that this node created; a mounted or non-empty
 * directory is kept.
 */
export async function removeVolumeDirectory(
  files: VolumeFiles,
  paths: CsiVolumePaths,
  driver: string | undefined,
): Promise<void> {
  const driverText =
    driver === undefined ? 'and nothing says by which driver' : `by the CSI driver ${driver}`;
  if ((await files.mountAt(paths.mount)) !== 'none')
    throw removalBlocked([`${paths.mount} is still mounted, ${driverText}`]);
  if ((await files.removeEmptyDirectory(paths.mount)) === 'not-empty')
    throw removalBlocked([`${paths.mount} has content, put there ${driverText}`]);
  await files.unlink(paths.data);
  await removeLeftovers(files, paths.directory);
  if ((await files.removeEmptyDirectory(paths.directory)) === 'not-empty')
    throw removalBlocked([`${paths.directory} has content that was not put there by this node`]);
}

/** Removes the temporary files of interrupted writes. */
export async function removeLeftovers(files: VolumeFiles, directory: string): Promise<void> {
  for (const name of await files.names(directory))
    if (leftover.test(name)) await files.unlink(`${directory}/${name}`);
}
