import { posix } from 'node:path';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { attachmentName, type CsiPlaces } from './csi-places.ts';
import type { CsiVolume } from './csi-request.ts';
import { originIn, originOf } from './volume-data.ts';

/** What must be known of a volume to take it away, whoever has asked for it. */
export interface BlockData {
  readonly driver: string;
  readonly handle: string;
  readonly origin?: 'in-tree' | undefined;
}

const directoryMode = 0o750;
const fileMode = 0o644;

/** What is on disk of volumes that are given to pods as devices: which there are, whose, and who has them. */
export class CsiBlockNotes {
  readonly #files: Pick<VolumeFiles, 'names' | 'readFile' | 'replaceFile' | 'makeDirectory'>;
  readonly #places: CsiPlaces;
  readonly #nodeName: string;

  constructor(
    files: Pick<VolumeFiles, 'names' | 'readFile' | 'replaceFile' | 'makeDirectory'>,
    places: CsiPlaces,
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
