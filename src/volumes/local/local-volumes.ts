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
  /** Parent directory of the pod directories. */
  readonly podsDir: string;
  readonly files: VolumeFiles;
  readonly clock: Clock;
  /** Disks of the machine; undefined to reject volumes that are disks. */
  readonly disks?: Pick<LocalDisks, 'with' | 'sweep' | 'grow'> | undefined;
}

export interface LocalVolume {
  /** The name of the PersistentVolume. */
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly mountOptions: readonly string[];
  /** File system type of a disk; undefined for the existing or the default one. */
  readonly fsType?: string | undefined;
}

/** The bind mount of a volume in a pod directory. */
interface Shown {
  readonly name: string;
  readonly source: string;
  readonly options: readonly string[];
  /**
   * With `write`, the group of the volume's files may be changed; with `read` it must not be
   * changed.
   */
  readonly access: 'read' | 'write';
}

/**
 * The group that the pod requests, and the group that the files have because other pods use the
 * volume with that group.
 */
export interface GroupConflict {
  readonly requested: number;
  readonly found: number;
}

const directoryMode = 0o750;
/**
 * Maximum number of stacked mounts to unmount: a killed process may have mounted a volume twice;
 * further mounts were not made by this node.
 */
const mostMounts = 4;

/**
 * Bind-mounts local PersistentVolumes, which are directories or disks, into pod directories. Their
 * content belongs to the user and is never removed.
 */
export class LocalVolumes {
  readonly #deps: LocalVolumesDeps;
  readonly #lock = new KeyedMutex<PodUid>();
  /**
   * Serializes pods with the same volume, so that the second pod finds the group set for the first
   * one.
   */
  readonly #paths = new KeyedMutex<string>();
  /**
   * Pods for which the group of a volume's files was set but which have not mounted the volume,
   * because their sync was cancelled in between.
   */
  readonly #given = new Map<PodUid, Set<string>>();

  constructor(deps: LocalVolumesDeps) {
    this.#deps = deps;
  }

  /** Path in the pod directory at which the volume is mounted. */
  mountPathOf(uid: PodUid, volume: string): string {
    return new PodVolumePaths(this.#deps.podsDir, uid).localVolume(volume);
  }

  /** Resolves the path of the volume. Rejects with VOLUME_UNUSABLE when it does not exist. */
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
   * Mounts the volume for the pod. Idempotent, also across processes. Sets the group of the files
   * unless another pod uses them; in that case it returns a group conflict, if the groups differ.
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
    // The mount directory is created before the disk is mounted, so that the directory records the
    // pod's use of the disk even if this process is killed in between.
    await this.#createMountPoint(pod.metadata.uid, name, signal);
    return await disks?.with(name, disk, show, signal);
  }

  /** Grows the file system of a disk; does nothing for a directory. */
  async grow(volume: LocalVolume, signal: AbortSignal): Promise<void> {
    const { path, kind } = await this.find(volume);
    if (kind === 'disk') await this.#deps.disks?.grow(volume.name, path, signal);
  }

  async #createMountPoint(uid: PodUid, name: string, signal: AbortSignal): Promise<void> {
    const { files, podsDir } = this.#deps;
    using _held = await this.#lock.acquire(uid, signal);
    const mountPoint = await unmountedPath(files, new PodVolumePaths(podsDir, uid), name);
    if ((await files.mountAt(mountPoint)) === 'none') await files.makeDirectory(mountPoint, directoryMode);
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
    const mountPoint = await unmountedPath(files, new PodVolumePaths(podsDir, uid), name);
    if ((await files.mountAt(mountPoint)) !== 'none') {
      // A previous process may have been killed before it set the mount options, so they are set
      // again.
      if (options.length > 0) await files.remount(mountPoint, options, signal);
      return undefined;
    }
    // The group is set before the bind mount, so that a mounted volume is complete.
    const conflict = access === 'read' ? undefined : await this.#giveToGroup(pod, name, source, use);
    signal.throwIfAborted();
    await files.makeDirectory(mountPoint, directoryMode);
    await files.bind(source, mountPoint, options, signal);
    this.#given.delete(uid);
    return conflict;
  }

  /**
   * Unmounts the pod's volumes once none of its containers runs; the UID is enough. Idempotent.
   * Removes the empty mount directories and keeps the volumes' content. Rejects with VOLUME_REMOVE,
   * which names the paths still in use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    using _held = await this.#lock.acquire(uid, signal);
    this.#given.delete(uid);
    const paths = new PodVolumePaths(this.#deps.podsDir, uid);
    const end = await endOf(files, paths.localVolumesChain);
    if (end === 'foreign') return;
    const names = end === 'ours' ? await files.names(paths.localVolumes) : [];
    const shown = names.map((name) => posix.join(paths.localVolumes, name));
    for (const mountPoint of shown) await this.#hide(mountPoint, signal);
    // Disks are also swept for pods without directories: a disk may have been mounted after the
    // directory was removed.
    await this.#deps.disks?.sweep(names, signal);
    // The mount directories are removed last, because they record what must be unmounted for the
    // pod.
    for (const mountPoint of shown) await this.#removeMountPoint(mountPoint);
    if (end === 'ours') await files.removeEmptyDirectory(paths.localVolumes);
  }

  async #hide(mountPoint: string, signal: AbortSignal): Promise<void> {
    const { files, clock } = this.#deps;
    for (let left = mostMounts; left > 0 && (await files.mountAt(mountPoint)) !== 'none'; left--) {
      await unmountWithRetries(clock, mountPoint, () => files.unbind(mountPoint, signal), signal);
    }
    // The type is checked after the unmount, because a mounted volume may not respond.
    if ((await files.kindAt(mountPoint)) !== 'directory')
      throw removalBlocked([`${mountPoint} is not a directory`]);
  }

  async #removeMountPoint(mountPoint: string): Promise<void> {
    const { files } = this.#deps;
    if ((await files.removeEmptyDirectory(mountPoint)) === 'not-empty')
      throw removalBlocked([`${mountPoint} has content that was not put there by this node`]);
  }

  async #giveToGroup(
    pod: Pod,
    volume: string,
    source: string,
    use: 'first' | 'shared',
  ): Promise<GroupConflict | undefined> {
    const { uid } = pod.metadata;
    const fsGroup = pod.spec.securityContext?.fsGroup;
    if (fsGroup === undefined || this.#given.get(uid)?.has(source) === true) return undefined;
    if (use === 'shared') {
      const { group: found } = await this.#deps.files.ownerOf(source);
      return found === fsGroup ? undefined : { requested: fsGroup, found };
    }
    await setVolumeOwnership(this.#deps, pod, { name: volume, directory: source }, fsGroup);
    this.#given.set(uid, (this.#given.get(uid) ?? new Set()).add(source));
    return undefined;
  }
}

/** Returns the pod's mount path of a volume; rejects when a path component is not a directory. */
async function unmountedPath(files: VolumeFiles, paths: PodVolumePaths, name: string): Promise<string> {
  const mountPoint = paths.localVolume(name);
  const foreign = await firstNonDirectory(files, [...paths.localVolumesChain, mountPoint]);
  if (foreign !== undefined) throw unusable(`${foreign} is not a directory`);
  return mountPoint;
}
