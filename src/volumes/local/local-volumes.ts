import { posix } from 'node:path';
import { type Clock, KeyedMutex } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { removalBlocked, unmountWithRetries } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { checkedFsType, checkedMountOptions } from '../manager/mount-options.ts';
import { type SetVolumeOwnershipDeps, setVolumeOwnership } from '../ownership/volume-ownership.ts';
import { unusable } from '../projected/payload.ts';
import { endOf, firstNonDirectory, PodVolumePaths } from '../projected/payload-paths.ts';
import type { LocalDisks } from './local-disks.ts';

export interface LocalVolumesDeps extends Omit<SetVolumeOwnershipDeps, 'files'> {
  /** Where the directories of pods are. */
  readonly podsDir: string;
  readonly files: VolumeFiles;
  readonly clock: Clock;
  /** For volumes that are disks; there are none unless given. */
  readonly disks?: Pick<LocalDisks, 'with' | 'sweep' | 'grow'> | undefined;
}

export interface LocalVolume {
  /** Of the PersistentVolume. */
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly mountOptions: readonly string[];
  /** Of a disk; empty for the one it has. */
  readonly fsType?: string | undefined;
}

/** A directory that a pod is shown. */
interface Shown {
  readonly name: string;
  readonly source: string;
  readonly options: readonly string[];
  /** Whether files there can be given to anybody. */
  readonly access: 'read' | 'write';
}

/** A group that the files of a volume were to be given to, while they have another that a pod works with. */
export interface GroupConflict {
  readonly wanted: number;
  readonly found: number;
}

const directoryMode = 0o750;
/** Whoever was killed at the wrong moment mounted twice at most; more than this is not ours. */
const mostMounts = 4;

/**
 * Directories and disks of the machine that are PersistentVolumes: each pod is shown them at a place of its own. Their
 * content is the user's: it is never taken away.
 */
export class LocalVolumes {
  readonly #deps: LocalVolumesDeps;
  readonly #lock = new KeyedMutex<PodUid>();
  /** Who comes second finds what the first has done to the files. */
  readonly #paths = new KeyedMutex<string>();
  /** Pods that were given all files of a volume and not shown it yet: they may have waited no longer for so many. */
  readonly #given = new Map<PodUid, Set<string>>();

  constructor(deps: LocalVolumesDeps) {
    this.#deps = deps;
  }

  /** Where the pod is shown the volume. */
  placeOf(uid: PodUid, volume: string): string {
    return new PodVolumePaths(this.#deps.podsDir, uid).localVolume(volume);
  }

  /** Where the volume itself is, links followed. Rejects with VOLUME_UNUSABLE when there is none. */
  async find({ path }: LocalVolume): Promise<{ readonly path: string; readonly kind: 'directory' | 'disk' }> {
    const found = await this.#deps.files.behind(path);
    if (found === undefined) throw unusable(`path ${JSON.stringify(path)} does not exist`);
    if (found.kind === 'other') throw unusable('only directory and block device are supported');
    if (found.kind === 'directory') return { path: found.path, kind: 'directory' };
    if (this.#deps.disks === undefined)
      throw unusable(`${path} is a block device, and this machine gives no access to those`);
    return { path: found.path, kind: 'disk' };
  }

  /**
   * Shows the pod the volume. May be repeated, by another process too. The files are given to the group of the pod
   * unless another pod works with them already: then the answer says whose they are, if they are another group's.
   */
  async setUp(
    pod: Pod,
    volume: LocalVolume,
    use: 'first' | 'shared',
    signal: AbortSignal,
  ): Promise<GroupConflict | undefined> {
    const { disks } = this.#deps;
    if (volume.path.split('/').includes('..'))
      throw unusable(`invalid path: ${volume.path} must not contain '..'`);
    const { path, kind } = await this.find(volume);
    const { name, readOnly } = volume;
    const fsType = checkedFsType(volume.fsType ?? '');
    const mountOptions = checkedMountOptions(volume.mountOptions);
    const ro = readOnly ? ['ro'] : [];
    if (kind === 'directory') {
      const options = [...ro, ...mountOptions];
      const directory = { name, source: path, options, access: readOnly ? 'read' : 'write' } as const;
      return await this.#show(pod, directory, use, signal);
    }
    const access = readOnly || mountOptions.includes('ro') ? 'read' : 'write';
    const disk = { device: path, fsType, options: mountOptions, access } as const;
    const show = (source: string) => this.#show(pod, { name, source, options: ro, access }, use, signal);
    // Before it is mounted: whoever is killed in between leaves a sign that the pod has something of it.
    await this.#makePlace(pod.metadata.uid, name, signal);
    return await disks?.with(name, disk, show, signal);
  }

  /** Makes what is on a disk as large as the disk; directories are as large as they are. */
  async grow(volume: LocalVolume, signal: AbortSignal): Promise<void> {
    const { path, kind } = await this.find(volume);
    if (kind === 'disk') await this.#deps.disks?.grow(volume.name, path, signal);
  }

  async #makePlace(uid: PodUid, name: string, signal: AbortSignal): Promise<void> {
    const { files, podsDir } = this.#deps;
    using _held = await this.#lock.acquire(uid, signal);
    const place = await freePlace(files, new PodVolumePaths(podsDir, uid), name);
    if ((await files.mountAt(place)) === 'none') await files.makeDirectory(place, directoryMode);
  }

  async #show(
    pod: Pod,
    { name, source, options, access }: Shown,
    use: 'first' | 'shared',
    signal: AbortSignal,
  ): Promise<GroupConflict | undefined> {
    const { files, podsDir } = this.#deps;
    const { uid } = pod.metadata;
    using _path = await this.#paths.acquire(source, signal);
    using _held = await this.#lock.acquire(uid, signal);
    const place = await freePlace(files, new PodVolumePaths(podsDir, uid), name);
    if ((await files.mountAt(place)) !== 'none') {
      // Whoever showed it may have been killed before it had its options.
      if (options.length > 0) await files.remount(place, options, signal);
      return undefined;
    }
    // Before it is shown: what is shown is finished.
    const conflict = access === 'read' ? undefined : await this.#giveToGroup(pod, name, source, use);
    signal.throwIfAborted();
    await files.makeDirectory(place, directoryMode);
    await files.bind(source, place, options, signal);
    this.#given.delete(uid);
    return conflict;
  }

  /**
   * To be called once nothing of the pod runs, also for pods of which nothing but the UID is known; may be repeated. The
   * places are taken away if they are empty once nothing is shown there, and the volumes stay as they are. Rejects with
   * VOLUME_REMOVE, naming the paths, for what is in use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    using _held = await this.#lock.acquire(uid, signal);
    this.#given.delete(uid);
    const places = new PodVolumePaths(this.#deps.podsDir, uid);
    const end = await endOf(files, places.waysToLocalVolumes);
    if (end === 'foreign') return;
    const names = end === 'ours' ? await files.names(places.localVolumes) : [];
    const shown = names.map((name) => posix.join(places.localVolumes, name));
    for (const place of shown) await this.#hide(place, signal);
    // Also when the pod has none: a disk may have been mounted for it after its place was taken away.
    await this.#deps.disks?.sweep(names, signal);
    // Last: without them nobody knows what is still to be unmounted for the pod.
    for (const place of shown) await this.#takeAway(place);
    if (end === 'ours') await files.removeEmptyDirectory(places.localVolumes);
  }

  async #hide(place: string, signal: AbortSignal): Promise<void> {
    const { files, clock } = this.#deps;
    for (let left = mostMounts; left > 0 && (await files.mountAt(place)) !== 'none'; left--) {
      await unmountWithRetries(clock, place, () => files.unbind(place, signal), signal);
    }
    // Not before: what is shown there may be dead.
    if ((await files.kindAt(place)) !== 'directory') throw removalBlocked([`${place} is no directory`]);
  }

  async #takeAway(place: string): Promise<void> {
    const { files } = this.#deps;
    if ((await files.removeEmptyDirectory(place)) === 'not-empty')
      throw removalBlocked([`${place} has content that was not put there by this node`]);
  }

  async #giveToGroup(
    pod: Pod,
    volume: string,
    source: string,
    use: 'first' | 'shared',
  ): Promise<GroupConflict | undefined> {
    const { uid } = pod.metadata;
    const wanted = pod.spec.securityContext?.fsGroup;
    if (wanted === undefined || this.#given.get(uid)?.has(source) === true) return undefined;
    if (use === 'shared') {
      const { group: found } = await this.#deps.files.ownerOf(source);
      return found === wanted ? undefined : { wanted, found };
    }
    await setVolumeOwnership(this.#deps, pod, { name: volume, directory: source }, wanted);
    this.#given.set(uid, (this.#given.get(uid) ?? new Set()).add(source));
    return undefined;
  }
}

/** Where the pod is to be shown the volume; nobody else may have made anything of the way there. */
async function freePlace(files: VolumeFiles, places: PodVolumePaths, name: string): Promise<string> {
  const place = places.localVolume(name);
  const foreign = await firstNonDirectory(files, [...places.waysToLocalVolumes, place]);
  if (foreign !== undefined) throw unusable(`${foreign} is no directory`);
  return place;
}
