import { posix } from 'node:path';
import { KeyedMutex, KubelingError, readMountTable } from '../lib/index.ts';
import { mayBePodUid, type PodUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';

const directoryMode = 0o750;
/** The directory of emptyDir volumes, whose content is removed with the pod. */
const ownVolumes = 'kubernetes.io~empty-dir';
/**
 * The depth of volume directories: `volumes/<kind>/<volume>` and
 * `volume-subpaths/<volume>/<container>/<mount>`. Deeper levels are volume content.
 */
const volumeTrees = { volumes: 2, 'volume-subpaths': 3 } as const;

/** Removes a directory recursively; rejects with the path as soon as it finds a mount point. */
export type RemoveTree = (directory: string) => Promise<void>;

/** Unmounts everything below a directory; returns the first mount point that is in use. */
export type UnmountInside = (directory: string, signal: AbortSignal) => Promise<string | undefined>;

/** Releases the disk quotas of directories; called before the directories are removed. */
export type ReleaseDirectories = (directories: readonly string[], signal: AbortSignal) => Promise<void>;

/** Unmounts only the bind mounts below a directory. */
export type UnmountSubPaths = (directory: string, signal: AbortSignal) => Promise<void>;

export type DirectoryRemoval =
  | { readonly kind: 'removed' }
  /** The directory was not removed, because a source has added the pod again. */
  | { readonly kind: 'desired' }
  | { readonly kind: 'blocked'; readonly path: string; readonly why: string };

/** How the content of a pod directory is removed; by default as plain files without mounts. */
export interface RemovalOptions {
  readonly unbind?: UnmountSubPaths | undefined;
  /** Removes the contents of volumes that the kubelet itself writes, such as config maps. */
  readonly unfill?: ((uid: PodUid, signal: AbortSignal) => Promise<void>) | undefined;
  readonly removeTree?: RemoveTree | undefined;
  readonly unmountInside?: UnmountInside | undefined;
  readonly release?: ReleaseDirectories | undefined;
}

/** The directories of pods below the root directory: one per pod, named by its UID. */
export class PodDirectories {
  readonly podsDir: string;
  readonly #files: RuntimeFiles;
  readonly #mountPoints: () => Promise<readonly string[]>;
  readonly #unbind: UnmountSubPaths;
  readonly #unfill: NonNullable<RemovalOptions['unfill']>;
  readonly #removeTree: RemoveTree;
  readonly #unmountInside: UnmountInside;
  readonly #release: ReleaseDirectories;
  /**
   * Serializes operations on the directory of a pod, because a pod may be added again while the
   * directory of the previous pod with its UID is being removed.
   */
  readonly #lock = new KeyedMutex<PodUid>();

  constructor(
    rootDir: string,
    files: RuntimeFiles,
    mountPoints: () => Promise<readonly string[]>,
    ways: RemovalOptions = {},
  ) {
    this.podsDir = podsDirOf(rootDir);
    this.#files = files;
    this.#mountPoints = mountPoints;
    this.#unbind = ways.unbind ?? (async () => {});
    this.#unfill = ways.unfill ?? (async () => {});
    this.#removeTree = ways.removeTree ?? ((directory) => files.remove(directory));
    this.#unmountInside = ways.unmountInside ?? (async () => undefined);
    this.#release = ways.release ?? (async () => {});
  }

  of(uid: PodUid): string {
    return posix.join(this.podsDir, uid);
  }

  /** Creates the directory of the pod and its subdirectories, unless they exist. */
  async create(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    const make = (name: string) => this.#files.makeDirectory(posix.join(this.of(uid), name), directoryMode);
    // The first call also creates the directory of the pod.
    await make('volumes');
    await Promise.all(['plugins', 'containers'].map(make));
  }

  list(): Promise<readonly PodUid[]> {
    return listPodUids(this.#files, this.podsDir);
  }

  /** Returns the path of the directory that contains the emptyDir volumes of the pod. */
  emptyDirs(uid: PodUid): string {
    return posix.join(this.of(uid), 'volumes', ownVolumes);
  }

  /**
   * Removes the subpath mounts of the pod. Must be called only when all its containers have
   * stopped.
   */
  async unmountSubPaths(uid: PodUid, signal: AbortSignal): Promise<void> {
    await this.#unbind(posix.join(this.of(uid), 'volume-subpaths'), signal);
  }

  /**
   * Removes the emptyDir volumes, unless their path contains a symbolic link, because the content
   * may then belong to another program. Unmounts what containers mounted there. Rejects with
   * VOLUME_REMOVE if a mount is in use, without deleting anything.
   */
  async removeEmptyDirs(uid: PodUid, signal: AbortSignal): Promise<void> {
    const directory = this.emptyDirs(uid);
    const kind = await this.#kindOfEmptyDirs(uid);
    if (kind === undefined) return;
    // If the path is a symbolic link, only the link is removed.
    if (kind !== 'directory') return await this.#files.remove(directory);
    await this.#removeMarkers(uid);
    if ((await this.#mountedBelow(uid, `/volumes/${ownVolumes}`)) !== undefined)
      await this.#unmountEmptyDirs(uid, signal);
    const names = await this.#files.names(directory);
    await this.#release(
      names.map((name) => posix.join(directory, name)),
      signal,
    );
    await this.#removeTree(directory);
  }

  async #unmountEmptyDirs(uid: PodUid, signal: AbortSignal): Promise<void> {
    const inUse = await this.#unmountInside(this.emptyDirs(uid), signal);
    if (inUse !== undefined)
      throw new KubelingError('VOLUME_REMOVE', `cannot unmount ${inUse}: it is in use`);
    const mounted = await this.#mountedBelow(uid, `/volumes/${ownVolumes}`);
    if (mounted !== undefined)
      throw new KubelingError('VOLUME_REMOVE', `cannot delete directory ${mounted}: it is a mount point`);
  }

  /**
   * Removes the markers of emptyDir volumes before their content: without its marker, a volume is
   * created again by the next kubelet. The markers of other volumes were removed with those
   * volumes.
   */
  async #removeMarkers(uid: PodUid): Promise<void> {
    const plugins = posix.join(this.of(uid), 'plugins');
    if ((await this.#files.kindAt(plugins)) !== 'directory') return;
    await this.#removeTree(posix.join(plugins, ownVolumes));
  }

  /**
   * Returns the file type of the emptyDir directory; undefined if it does not exist or its path
   * contains a symbolic link.
   */
  async #kindOfEmptyDirs(uid: PodUid): Promise<string | undefined> {
    for (const above of [this.of(uid), posix.join(this.of(uid), 'volumes')]) {
      if ((await this.#files.kindAt(above)) !== 'directory') return undefined;
    }
    return await this.#files.kindAt(this.emptyDirs(uid));
  }

  /**
   * Removes the directory of a pod with its emptyDirs and generated volumes. Other volumes must be
   * empty: if one has content, or a file system is mounted in the directory, its path is returned. `isWanted` is
   * called while the directory cannot be created concurrently.
   */
  async remove(uid: PodUid, isWanted: () => boolean, signal: AbortSignal): Promise<DirectoryRemoval> {
    using _held = await this.#lock.acquire(uid, signal);
    if (isWanted()) return { kind: 'desired' };
    await this.unmountSubPaths(uid, signal);
    await this.#unfill(uid, signal);
    let mounted = await this.#mountedBelow(uid);
    if (mounted !== undefined && (await this.#kindOfEmptyDirs(uid)) === 'directory') {
      const inUse = await this.#unmountInside(this.emptyDirs(uid), signal);
      if (inUse !== undefined) return { kind: 'blocked', path: inUse, why: 'is mounted and in use' };
      mounted = await this.#mountedBelow(uid);
    }
    if (mounted !== undefined) return { kind: 'blocked', path: mounted, why: 'is mounted' };
    const kind = await this.#files.kindAt(this.of(uid));
    if (kind !== undefined && kind !== 'directory')
      return { kind: 'blocked', path: this.of(uid), why: 'is not a directory' };
    await this.removeEmptyDirs(uid, signal);
    for (const [name, depth] of Object.entries(volumeTrees)) {
      const left = await this.#removeEmpty(posix.join(this.of(uid), name), depth);
      if (left !== undefined) return { kind: 'blocked', path: left, why: 'still has content of a volume' };
    }
    await this.#removeTree(this.of(uid));
    return { kind: 'removed' };
  }

  /** Rejects with VOLUME_REMOVE while a file system is mounted below the volumes of the pod. */
  async checkUnmounted(uid: PodUid): Promise<void> {
    const mounted = await this.#mountedBelow(uid, '/volumes');
    if (mounted !== undefined) throw new KubelingError('VOLUME_REMOVE', `${mounted} is mounted`);
  }

  /** Returns the sorted names of the pod's volumes that have mount points. */
  async mountedVolumes(uid: PodUid): Promise<readonly string[]> {
    const points = await this.#allMountedBelow(uid, '/volumes');
    const names = points.map((point) => point.split(`/pods/${uid}/volumes/`)[1]?.split('/')[1]);
    return [...new Set(names.filter((name) => name !== undefined))].sort();
  }

  async #mountedBelow(uid: PodUid, part = ''): Promise<string | undefined> {
    return (await this.#allMountedBelow(uid, part))[0];
  }

  /**
   * The path of the pod's directory may contain a symbolic link, which the listed mount points
   * never do; so mount points are found by the UID in their path.
   */
  async #allMountedBelow(uid: PodUid, part: string): Promise<readonly string[]> {
    const own = `/pods/${uid}${part}`;
    return (await this.#mountPoints()).filter((point) => point.endsWith(own) || point.includes(`${own}/`));
  }

  /**
   * Removes empty directories up to the given depth; returns the path of the first directory that is not
   * empty or not a directory. Does not follow links.
   */
  async #removeEmpty(directory: string, depth: number): Promise<string | undefined> {
    const kind = await this.#files.kindAt(directory);
    if (kind === undefined) return undefined;
    if (kind !== 'directory') return directory;
    const names = depth > 0 ? await this.#files.names(directory) : [];
    for (const name of names) {
      const left = await this.#removeEmpty(posix.join(directory, name), depth - 1);
      if (left !== undefined) return left;
    }
    return (await this.#files.removeEmptyDirectory(directory)) === 'gone' ? undefined : directory;
  }
}

/**
 * Returns the UIDs of pods that have a directory. Ignores files, links and names that are not valid
 * UIDs, which do not belong to the kubelet.
 */
export async function listPodUids(
  files: Pick<RuntimeFiles, 'names' | 'kindAt'>,
  podsDir: string,
): Promise<readonly PodUid[]> {
  const uids = (await files.names(podsDir)).filter(mayBePodUid);
  const kinds = await Promise.all(uids.map((uid) => files.kindAt(posix.join(podsDir, uid))));
  return uids.filter((_uid, index) => kinds[index] === 'directory');
}

export function podsDirOf(rootDir: string): string {
  return posix.join(rootDir, 'pods');
}

/** Returns the mount points in the mount namespace of this process. */
export async function mountPoints(machine: {
  readFile(path: string): Promise<string>;
}): Promise<readonly string[]> {
  return (await readMountTable((path) => machine.readFile(path))).map(({ mountPoint }) => mountPoint);
}
