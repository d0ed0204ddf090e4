import type { VolumeFiles } from '../files/volume-files.ts';
import { type CsiVolumePaths, volumePathsIn } from './csi-paths.ts';

/** The data needed to unmount a volume, whichever process mounted it. */
export interface VolumeData {
  readonly driver: string;
  readonly handle: string;
  readonly mode: 'Persistent' | 'Ephemeral';
  /** `published` after the driver confirmed the publish call; otherwise its outcome is unknown. */
  readonly state?: 'asked' | 'published';
  /**
   * Boot id of the machine when the volume was mounted; undefined or empty when it was not
   * recorded.
   */
  readonly boot?: string | undefined;
  /** `in-tree` when the volume is a migrated in-tree volume. */
  readonly origin?: 'in-tree' | undefined;
  /** SELinux context with which the volume is mounted. */
  readonly context?: string | undefined;
}

/** Key of the volume, the same for all pods. */
export function keyOf({ driver, handle }: Pick<VolumeData, 'driver' | 'handle'>): string {
  return `${driver}^${handle}`;
}

export function isValid(data: VolumeData | 'damaged' | undefined): data is VolumeData {
  return data !== undefined && data !== 'damaged';
}

const fileMode = 0o644;
/** Fields of the data file that other kubelets ignore. */
const doneKey = 'publishedBy';
const bootKey = 'bootID';
const originKey = 'origin';
const doneBy = 'kubeling';

/** Builds the content of the data file of a volume published to a pod. */
export function podVolumeData(
  { driver, handle, mode, state, boot, context, origin }: VolumeData,
  specName: string,
  nodeName: string,
  attachment: string,
): Readonly<Record<string, string>> {
  return {
    attachmentID: attachment,
    driverName: driver,
    nodeName,
    specVolID: specName,
    volumeHandle: handle,
    volumeLifecycleMode: mode,
    ...(context === undefined ? {} : { seLinuxMountContext: context }),
    ...(boot === undefined || boot === '' ? {} : { [bootKey]: boot }),
    ...originIn(origin),
    ...(state === 'published' ? { [doneKey]: doneBy } : {}),
  };
}

export function stagedVolumeData({
  driver,
  handle,
  context,
  origin,
}: Pick<VolumeData, 'driver' | 'handle' | 'context' | 'origin'>): Readonly<Record<string, string>> {
  return {
    driverName: driver,
    volumeHandle: handle,
    ...(context === undefined ? {} : { seLinuxMountContext: context }),
    ...originIn(origin),
  };
}

/** Writes a data file atomically: readers get either the old or the new content. */
export async function writeVolumeData(
  files: VolumeFiles,
  paths: CsiVolumePaths,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  await files.replaceFile(paths.data, Buffer.from(`${JSON.stringify(data)}\n`), fileMode);
}

/** Reads a data file: undefined when it is missing and 'damaged' when it cannot be parsed. */
export async function readVolumeData(
  files: VolumeFiles,
  paths: CsiVolumePaths,
): Promise<VolumeData | 'damaged' | undefined> {
  const text = await files.readFile(paths.data);
  if (text === undefined) return undefined;
  try {
    const { driverName, volumeHandle, volumeLifecycleMode, ...more } = JSON.parse(text.toString('utf8'));
    const isSound = [driverName, volumeHandle].every((value) => typeof value === 'string' && value !== '');
    const mode = volumeLifecycleMode === 'Ephemeral' ? 'Ephemeral' : 'Persistent';
    const state = more[doneKey] === doneBy ? 'published' : 'asked';
    const context = textOf(more.seLinuxMountContext);
    const boot = textOf(more[bootKey]);
    const found = { driver: driverName, handle: volumeHandle, mode, state, context, boot } as const;
    return isSound ? { ...found, ...originOf(more) } : 'damaged';
  } catch {
    return 'damaged';
  }
}

/**
 * Returns the field of the data file that marks a migrated in-tree volume; no field for other
 * volumes.
 */
export function originIn(origin: VolumeData['origin']): Readonly<Record<string, string>> {
  return origin === undefined ? {} : { [originKey]: origin };
}

export function originOf(stored: Readonly<Record<string, unknown>>): Pick<VolumeData, 'origin'> {
  return stored[originKey] === 'in-tree' ? { origin: 'in-tree' } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the volume directories with the content of their data files. */
export async function volumesIn(
  files: VolumeFiles,
  directory: string,
  mount: 'mount' | 'globalmount',
): Promise<readonly { readonly paths: CsiVolumePaths; readonly data: VolumeData | 'damaged' | undefined }[]> {
  const found = [];
  for (const name of await files.names(directory)) {
    const paths = volumePathsIn(`${directory}/${name}`, mount);
    if ((await files.kindAt(paths.directory)) !== 'directory') continue;
    found.push({ paths, data: await readVolumeData(files, paths) });
  }
  return found;
}
