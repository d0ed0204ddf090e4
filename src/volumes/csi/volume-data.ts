import type { VolumeFiles } from '../files/volume-files.ts';
import { type CsiVolumePaths, volumePathsIn } from './csi-paths.ts';

/** What must be known of a mounted volume to take it away, whoever mounted it. */
export interface VolumeData {
  readonly driver: string;
  readonly handle: string;
  readonly mode: 'Persistent' | 'Ephemeral';
  /** Whether the driver has said that it is done; without that nobody knows how far it came. */
  readonly state?: 'asked' | 'published';
  /** The life of the machine it was mounted in; undefined or empty where nobody noted it. */
  readonly boot?: string | undefined;
  /** Whether it was described in the words of the time before there were drivers. */
  readonly origin?: 'in-tree' | undefined;
  /** That SELinux has for all files in it. */
  readonly context?: string | undefined;
}

/** The volume, whoever has it. */
export function keyOf({ driver, handle }: Pick<VolumeData, 'driver' | 'handle'>): string {
  return `${driver}^${handle}`;
}

export function isValid(data: VolumeData | 'damaged' | undefined): data is VolumeData {
  return data !== undefined && data !== 'damaged';
}

const fileMode = 0o644;
/** Beside what other kubelets write, who take no notice of it. */
const doneKey = 'publishedBy';
const bootKey = 'bootID';
const originKey = 'origin';
const doneBy = 'kubeling';

/** Of a volume that a pod is shown. */
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

/** At any instant readers see all of it or what was there before. */
export async function writeVolumeData(
  files: VolumeFiles,
  place: CsiVolumePaths,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  await files.replaceFile(place.data, Buffer.from(`${JSON.stringify(data)}\n`), fileMode);
}

/** Undefined when there is none; 'damaged' when it cannot be understood. */
export async function readVolumeData(
  files: VolumeFiles,
  place: CsiVolumePaths,
): Promise<VolumeData | 'damaged' | undefined> {
  const text = await files.readFile(place.data);
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

/** As a file says it. */
export function originIn(origin: VolumeData['origin']): Readonly<Record<string, string>> {
  return origin === undefined ? {} : { [originKey]: origin };
}

export function originOf(said: Readonly<Record<string, unknown>>): Pick<VolumeData, 'origin'> {
  return said[originKey] === 'in-tree' ? { origin: 'in-tree' } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Each directory below with what its file says. */
export async function volumesIn(
  files: VolumeFiles,
  directory: string,
  mount: 'mount' | 'globalmount',
): Promise<readonly { readonly place: CsiVolumePaths; readonly data: VolumeData | 'damaged' | undefined }[]> {
  const found = [];
  for (const name of await files.names(directory)) {
    const place = volumePathsIn(`${directory}/${name}`, mount);
    if ((await files.kindAt(place.directory)) !== 'directory') continue;
    found.push({ place, data: await readVolumeData(files, place) });
  }
  return found;
}
