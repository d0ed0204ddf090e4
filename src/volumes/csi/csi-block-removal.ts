import { posix } from 'node:path';
import { type Clock, describeError, isKind } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import { mayBePodUid } from '../../pods/index.ts';
import { sourceOf } from '../claims/bound-volume.ts';
import { removalBlocked } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { type StorageObserver, timed } from '../manager/volume-metrics.ts';
import type { CsiApi } from './csi-attach.ts';
import type { CsiDriver } from './csi-drivers.ts';
import { attachmentName, type CsiPaths, csiPlugin } from './csi-paths.ts';
import { removeLeftovers } from './csi-removal.ts';
import type { CsiVolume } from './csi-request.ts';
import { originIn, originOf } from './volume-data.ts';

export interface CsiBlockRemovalDeps {
  readonly paths: CsiPaths;
  readonly clock: Clock;
  readonly observe: StorageObserver;
  readonly files: VolumeFiles;
  readonly records: Pick<BlockDataFiles, 'read' | 'podsOf'>;
  /** Returns the volume recorded for a pod. */
  readonly recordedVolume: (uid: PodUid, name: string) => BlockData | undefined;
  readonly api: Pick<CsiApi, 'volume'> | undefined;
  /** Returns the registered driver of the volume. Throws CSI_ABSENT when there is none. */
  readonly driver: (data: BlockData) => CsiDriver;
  /** Called before the driver gets the call to unstage the volume. */
  readonly unstaged: () => void;
}

export interface DeviceToRemove {
  /** The name of the PersistentVolume. */
  readonly name: string;
  /** UID of the pod that releases the volume; undefined when no pod had it. */
  readonly uid: PodUid | undefined;
  /** Whether NodePublishVolume was called for the pod, even if no file on disk shows that. */
  readonly isRequested: boolean;
  /** Whether a pod waits for the volume or uses it. */
  readonly isDesired: (data: BlockData | undefined) => boolean;
}

export interface RemovedDevice {
  readonly left: 'something' | 'nothing';
  /** Data of the volume; undefined when its driver and handle are unknown. */
  readonly data: BlockData | undefined;
}

/**
 * Unpublishes the device from a terminated pod, and unstages it after its last pod. The caller must
 * hold the volume's lock and have unmapped the device. Rejects with VOLUME_REMOVE, which names what
 * prevents the removal.
 */
export async function removeDevice(
  deps: CsiBlockRemovalDeps,
  volume: DeviceToRemove,
  signal: AbortSignal,
): Promise<RemovedDevice> {
  const { name, uid } = volume;
  const data = await ownerOf(deps, volume, signal);
  const isShown = (await deps.files.names(deps.paths.publishedDevices(name))).includes(uid ?? '');
  if (uid !== undefined && (isShown || volume.isRequested)) await unpublish(deps, name, uid, data, signal);
  if (volume.isDesired(data) || (await deps.records.podsOf(name)).length > 0)
    return { left: 'something', data };
  await unstage(deps, name, data, signal);
  return { left: 'nothing', data };
}

/**
 * Returns driver and handle of the volume; uses the recorded volume or the API server when the data
 * file is damaged.
 */
async function ownerOf(
  { records, recordedVolume, api }: CsiBlockRemovalDeps,
  { name, uid }: DeviceToRemove,
  signal: AbortSignal,
): Promise<BlockData | undefined> {
  const data = await records.read(name);
  if (data !== undefined && data !== 'damaged') return data;
  const recorded = uid === undefined ? undefined : recordedVolume(uid, name);
  if (recorded !== undefined) return recorded;
  const found = await api?.volume(name, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (isKind(error, 'Unavailable', 'DeadlineExceeded'))
      throw removalBlocked([
        `the file of the volume ${name} is damaged, and the API server is unreachable: ${describeError(error)}`,
      ]);
    return undefined;
  });
  const source = found && sourceOf(found);
  return source?.kind === 'csi' ? source : undefined;
}

async function unpublish(
  { files, paths, driver }: CsiBlockRemovalDeps,
  name: string,
  uid: PodUid,
  data: BlockData | undefined,
  signal: AbortSignal,
): Promise<void> {
  const target = paths.publishedDevice(name, uid);
  if (data !== undefined)
    await withReportedFailure(`${described(data)} cannot be unpublished`, () =>
      driver(data).client.unpublish(data.handle, target, signal),
    );
  else await rejectMounted(files, target);
  // Files that the driver left behind are kept.
  if ((await files.mountAt(target)) === 'none' && (await files.kindAt(target)) === 'file')
    await files.unlink(target);
}

async function unstage(
  { files, paths, driver, unstaged, clock, observe }: CsiBlockRemovalDeps,
  name: string,
  data: BlockData | undefined,
  signal: AbortSignal,
): Promise<void> {
  const staging = paths.stagedDevice(name);
  // Without the data file no driver was called, so the directories must be empty.
  if ((await files.kindAt(staging)) !== undefined) {
    unstaged();
    if (data === undefined) await rejectMounted(files, staging);
    else
      await withReportedFailure(`${described(data)} cannot be unstaged`, async () => {
        const { client, can } = driver(data);
        const work = () => client.unstage(data.handle, staging, signal);
        if (can.has('STAGE_UNSTAGE_VOLUME'))
          await timed({ clock, observe }, 'unmap_device', [csiPlugin(data)], work);
      });
  }
  const own = paths.device(name);
  for (const directory of [staging, paths.publishedDevices(name), own.dev])
    await removeEmpty(files, directory);
  // The data file is removed last: without it the driver and the handle are unknown.
  await files.unlink(own.data);
  await removeLeftovers(files, posix.dirname(own.data));
  for (const directory of [posix.dirname(own.data), own.directory]) await removeEmpty(files, directory);
}

function described({ driver, handle }: BlockData): string {
  return `the volume ${handle} of the CSI driver ${driver}`;
}

/** Rejects when the path is mounted: its driver is unknown, and only that driver may unmount it. */
async function rejectMounted(files: VolumeFiles, path: string): Promise<void> {
  if ((await files.mountAt(path)) !== 'none')
    throw removalBlocked([
      `${path} is still mounted, and nothing says by which driver: its vol_data.json is missing or damaged`,
    ]);
}

async function withReportedFailure(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw removalBlocked([`${what}: ${describeError(error)}`]);
  }
}

async function removeEmpty(files: VolumeFiles, directory: string): Promise<void> {
  if ((await files.removeEmptyDirectory(directory)) === 'not-empty')
    throw removalBlocked([`${directory} has content that was not put there by this node`]);
}

/** The data needed to remove a block volume of any pod. */
export interface BlockData {
  readonly driver: string;
  readonly handle: string;
  readonly origin?: 'in-tree' | undefined;
}

const directoryMode = 0o750;
const fileMode = 0o644;

/** Reads and writes the vol_data.json files of block volumes. */
export class BlockDataFiles {
  readonly #files: Pick<VolumeFiles, 'names' | 'readFile' | 'replaceFile' | 'makeDirectory'>;
  readonly #paths: CsiPaths;
  readonly #nodeName: string;

  constructor(
    files: Pick<VolumeFiles, 'names' | 'readFile' | 'replaceFile' | 'makeDirectory'>,
    paths: CsiPaths,
    nodeName: string,
  ) {
    this.#files = files;
    this.#paths = paths;
    this.#nodeName = nodeName;
  }

  /** Returns the names of all block volumes on disk, including those of previous kubelets. */
  async names(): Promise<readonly string[]> {
    const names = await this.#files.names(this.#paths.devices);
    return names.filter((name) => !this.#paths.isShared(name));
  }

  /** Returns the UIDs of pods for which the volume may be published or mapped. */
  async podsOf(name: string): Promise<readonly PodUid[]> {
    const directories = [this.#paths.publishedDevices(name), this.#paths.device(name).dev];
    const found = await Promise.all(directories.map((directory) => this.#files.names(directory)));
    return [...new Set(found.flat())].filter(mayBePodUid);
  }

  async write({ name, driver, handle, origin }: CsiVolume): Promise<void> {
    const text = JSON.stringify({
      attachmentID: attachmentName(handle, driver, this.#nodeName),
      driverName: driver,
      nodeName: this.#nodeName,
      specVolID: name,
      volumeHandle: handle,
      ...originIn(origin),
    });
    const { data } = this.#paths.device(name);
    await this.#files.makeDirectory(posix.dirname(data), directoryMode);
    await this.#files.replaceFile(data, Buffer.from(`${text}\n`), fileMode);
  }

  /**
   * Reads the data file of a volume: undefined when it is missing and 'damaged' when it cannot be
   * parsed.
   */
  async read(name: string): Promise<BlockData | 'damaged' | undefined> {
    const text = await this.#files.readFile(this.#paths.device(name).data);
    if (text === undefined) return undefined;
    try {
      const { driverName: driver, volumeHandle: handle, ...more } = JSON.parse(text.toString('utf8'));
      const isSound = [driver, handle].every((value) => typeof value === 'string' && value !== '');
      return isSound ? { driver, handle, ...originOf(more) } : 'damaged';
    } catch {
      return 'damaged';
    }
  }
}
