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
  readonly places: CsiPaths;
  readonly clock: Clock;
  readonly observe: StorageObserver;
  readonly files: VolumeFiles;
  readonly notes: Pick<BlockDataFiles, 'read' | 'podsOf'>;
  /** Of the PersistentVolumes that pods were noted to have. */
  readonly notedVolume: (uid: PodUid, name: string) => BlockData | undefined;
  readonly api: Pick<CsiApi, 'volume'> | undefined;
  /** Throws CSI_ABSENT. */
  readonly driver: (data: BlockData) => CsiDriver;
  /** The driver is about to be asked to unstage it. */
  readonly unstaged: () => void;
}

export interface DeviceToRemove {
  /** Of the PersistentVolume. */
  readonly name: string;
  /** The pod that has it no more; undefined where none had it. */
  readonly uid: PodUid | undefined;
  /** Whether the driver was asked to publish it to the pod, though nothing may be seen of that. */
  readonly isAsked: boolean;
  /** Whether a pod waits for the volume or has it. */
  readonly isWanted: (data: BlockData | undefined) => boolean;
}

export interface RemovedDevice {
  readonly left: 'something' | 'nothing';
  /** Undefined when nobody knows whose it was. */
  readonly data: BlockData | undefined;
}

/**
 * Has the driver take a device away from a pod that is over, and from the node with the last of its pods. To be called
 * with the volume locked, once nothing shows the pod the device. Rejects with VOLUME_REMOVE for what is in the way.
 */
export async function removeDevice(
  deps: CsiBlockRemovalDeps,
  volume: DeviceToRemove,
  signal: AbortSignal,
): Promise<RemovedDevice> {
  const { name, uid } = volume;
  const data = await whose(deps, volume, signal);
  const isShown = (await deps.files.names(deps.places.publishedDevices(name))).includes(uid ?? '');
  if (uid !== undefined && (isShown || volume.isAsked)) await unpublish(deps, name, uid, data, signal);
  if (volume.isWanted(data) || (await deps.notes.podsOf(name)).length > 0) return { left: 'something', data };
  await unstage(deps, name, data, signal);
  return { left: 'nothing', data };
}

/** Where the file is damaged others may know what it said. */
async function whose(
  { notes, notedVolume, api }: CsiBlockRemovalDeps,
  { name, uid }: DeviceToRemove,
  signal: AbortSignal,
): Promise<BlockData | undefined> {
  const data = await notes.read(name);
  if (data !== undefined && data !== 'damaged') return data;
  const noted = uid === undefined ? undefined : notedVolume(uid, name);
  if (noted !== undefined) return noted;
  const found = await api?.volume(name, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (isKind(error, 'Unavailable', 'DeadlineExceeded'))
      throw removalBlocked([
        `the file of the volume ${name} is damaged, and the API is away: ${describeError(error)}`,
      ]);
    return undefined;
  });
  const source = found && sourceOf(found);
  return source?.kind === 'csi' ? source : undefined;
}

async function unpublish(
  { files, places, driver }: CsiBlockRemovalDeps,
  name: string,
  uid: PodUid,
  data: BlockData | undefined,
  signal: AbortSignal,
): Promise<void> {
  const target = places.publishedDevice(name, uid);
  if (data !== undefined)
    await told(`${described(data)} cannot be unpublished`, () =>
      driver(data).client.unpublish(data.handle, target, signal),
    );
  else await refuseMounted(files, target);
  // What it has left of its own is not ours to take.
  if ((await files.mountAt(target)) === 'none' && (await files.kindAt(target)) === 'file')
    await files.unlink(target);
}

async function unstage(
  { files, places, driver, unstaged, clock, observe }: CsiBlockRemovalDeps,
  name: string,
  data: BlockData | undefined,
  signal: AbortSignal,
): Promise<void> {
  const staging = places.stagedDevice(name);
  // Without it no driver was asked yet.
  if ((await files.kindAt(staging)) !== undefined) {
    unstaged();
    if (data === undefined) await refuseMounted(files, staging);
    else
      await told(`${described(data)} cannot be unstaged`, async () => {
        const { client, can } = driver(data);
        const work = () => client.unstage(data.handle, staging, signal);
        if (can.has('STAGE_UNSTAGE_VOLUME'))
          await timed({ clock, observe }, 'unmap_device', [csiPlugin(data)], work);
      });
  }
  const own = places.device(name);
  for (const directory of [staging, places.publishedDevices(name), own.dev])
    await removeEmpty(files, directory);
  // Last: without it nobody knows whose it is.
  await files.unlink(own.data);
  await removeLeftovers(files, posix.dirname(own.data));
  for (const directory of [posix.dirname(own.data), own.directory]) await removeEmpty(files, directory);
}

function described({ driver, handle }: BlockData): string {
  return `the volume ${handle} of the CSI driver ${driver}`;
}

/** Only the driver may unmount it, and nobody knows which one that is. */
async function refuseMounted(files: VolumeFiles, path: string): Promise<void> {
  if ((await files.mountAt(path)) !== 'none')
    throw removalBlocked([
      `${path} is still mounted, and nothing says by which driver: its vol_data.json is missing or damaged`,
    ]);
}

async function told(what: string, work: () => Promise<void>): Promise<void> {
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

/** What must be known of a volume to take it away, whoever has asked for it. */
export interface BlockData {
  readonly driver: string;
  readonly handle: string;
  readonly origin?: 'in-tree' | undefined;
}

const directoryMode = 0o750;
const fileMode = 0o644;

/** What is on disk of volumes that are given to pods as devices: which there are, whose, and who has them. */
export class BlockDataFiles {
  readonly #files: Pick<VolumeFiles, 'names' | 'readFile' | 'replaceFile' | 'makeDirectory'>;
  readonly #places: CsiPaths;
  readonly #nodeName: string;

  constructor(
    files: Pick<VolumeFiles, 'names' | 'readFile' | 'replaceFile' | 'makeDirectory'>,
    places: CsiPaths,
    nodeName: string,
  ) {
    this.#files = files;
    this.#places = places;
    this.#nodeName = nodeName;
  }

  /** The names of all volumes, also those of earlier kubelets. */
  async names(): Promise<readonly string[]> {
    const names = await this.#files.names(this.#places.devices);
    return names.filter((name) => !this.#places.isShared(name));
  }

  /** Who may have the volume, published or shown. */
  async podsOf(name: string): Promise<readonly PodUid[]> {
    const places = [this.#places.publishedDevices(name), this.#places.device(name).dev];
    const found = await Promise.all(places.map((place) => this.#files.names(place)));
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
    const { data } = this.#places.device(name);
    await this.#files.makeDirectory(posix.dirname(data), directoryMode);
    await this.#files.replaceFile(data, Buffer.from(`${text}\n`), fileMode);
  }

  /** Undefined when there is no file; 'damaged' when it cannot be understood. */
  async read(name: string): Promise<BlockData | 'damaged' | undefined> {
    const text = await this.#files.readFile(this.#places.device(name).data);
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
