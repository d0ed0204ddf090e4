import { posix } from 'node:path';
import { KeyedMutex, KubelingError, readMountTable } from '../lib/index.ts';
import { mayBePodUid, type PodUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';

const directoryMode = 0o750;
/** The one kind of volume whose content has no life of its own: it ends with its pod. */
const ownVolumes = 'kubernetes.io~empty-dir';
/** `volumes/<kind>/<volume>` and `volume-subpaths/<volume>/<container>/<mount>`: what lies deeper is content. */
const volumeTrees = { volumes: 2, 'volume-subpaths': 3 } as const;

/** Removes a directory with all that is in it; refuses, and says where, as soon as it meets something mounted. */
export type RemoveTree = (directory: string) => Promise<void>;

/** Unmounts all that is mounted below a directory; answers the first that is in use. */
export type UnmountInside = (directory: string, signal: AbortSignal) => Promise<string | undefined>;

/** Takes away limits that directories were held to; to be called before they are removed. */
export type ReleaseDirectories = (directories: readonly string[], signal: AbortSignal) => Promise<void>;

/** Undoes every bind below a directory, and nothing else. */
export type UnbindParts = (directory: string, signal: AbortSignal) => Promise<void>;

export type DirectoryRemoval =
  | { readonly kind: 'removed' }
  /** Somebody wants the pod after all. */
  | { readonly kind: 'wanted' }
  | { readonly kind: 'blocked'; readonly path: string; readonly why: string };

/** How parts of what a pod has are taken away; as plain files unless given. */
export interface RemovalWays {
  readonly unbind?: UnbindParts | undefined;
  /** Takes away the volumes of a pod that are filled from here. */
  readonly unfill?: ((uid: PodUid, signal: AbortSignal) => Promise<void>) | undefined;
  readonly removeTree?: RemoveTree | undefined;
  readonly unmountInside?: UnmountInside | undefined;
  readonly release?: ReleaseDirectories | undefined;
}

/** The directories of pods under the root directory: one for each, named by its UID. */
export class PodDirectories {
  readonly podsDir: string;
  readonly #files: RuntimeFiles;
  readonly #mountPoints: () => Promise<readonly string[]>;
  readonly #unbind: UnbindParts;
  readonly #unfill: NonNullable<RemovalWays['unfill']>;
  readonly #removeTree: RemoveTree;
  readonly #unmountInside: UnmountInside;
  readonly #release: ReleaseDirectories;
  /** A pod may come back while what an earlier one of its UID left is being removed. */
  readonly #lock = new KeyedMutex<PodUid>();

  constructor(
    rootDir: string,
    files: RuntimeFiles,
    mountPoints: () => Promise<readonly string[]>,
    ways: RemovalWays = {},
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

  /** Fine when they are there already. */
  async make(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    const make = (name: string) => this.#files.makeDirectory(posix.join(this.of(uid), name), directoryMode);
    // The first one finds that the pod's own is missing, and makes it.
    await make('volumes');
    await Promise.all(['plugins', 'containers'].map(make));
  }

  list(): Promise<readonly PodUid[]> {
    return listPodUids(this.#files, this.podsDir);
  }

  /** Where a pod has those of its volumes whose content ends with it. */
  emptyDirsOf(uid: PodUid): string {
    return posix.join(this.of(uid), 'volumes', ownVolumes);
  }

  /** Takes away where parts of the pod's volumes are shown; to be called once nothing of it runs. */
  async unbindParts(uid: PodUid, signal: AbortSignal): Promise<void> {
    await this.#unbind(posix.join(this.of(uid), 'volume-subpaths'), signal);
  }

  /**
   * Unless a link leads there: then they are somebody else's. What containers have mounted in them is unmounted; rejects
   * with VOLUME_REMOVE for what is in use, and then nothing is deleted.
   */
  async removeEmptyDirs(uid: PodUid, signal: AbortSignal): Promise<void> {
    const directory = this.emptyDirsOf(uid);
    const kind = await this.#kindOfEmptyDirs(uid);
    if (kind === undefined) return;
    // A link goes, what it leads to stays.
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
    const inUse = await this.#unmountInside(this.emptyDirsOf(uid), signal);
    if (inUse !== undefined)
      throw new KubelingError('VOLUME_REMOVE', `cannot unmount ${inUse}: it is in use`);
    const mounted = await this.#mountedBelow(uid, `/volumes/${ownVolumes}`);
    if (mounted !== undefined)
      throw new KubelingError('VOLUME_REMOVE', `cannot delete directory ${mounted}: it is a mount point`);
  }

  /** First of all: without its marker every kubelet makes a volume anew. Those of other volumes have gone with them. */
  async #removeMarkers(uid: PodUid): Promise<void> {
    const plugins = posix.join(this.of(uid), 'plugins');
    if ((await this.#files.kindAt(plugins)) !== 'directory') return;
    await this.#removeTree(posix.join(plugins, ownVolumes));
  }

  /** Undefined when there are none, or a link leads to them. */
  async #kindOfEmptyDirs(uid: PodUid): Promise<string | undefined> {
    for (const above of [this.of(uid), posix.join(this.of(uid), 'volumes')]) {
      if ((await this.#files.kindAt(above)) !== 'directory') return undefined;
    }
    return await this.#files.kindAt(this.emptyDirsOf(uid));
  }

  /**
   * Removes what a pod has left. Never what a volume holds and never across a mount: then nothing is touched and the
   * answer names what is in the way. `isWanted` is asked once nobody can make the directory any more.
   */
  async remove(uid: PodUid, isWanted: () => boolean, signal: AbortSignal): Promise<DirectoryRemoval> {
    using _held = await this.#lock.acquire(uid, signal);
    if (isWanted()) return { kind: 'wanted' };
    await this.unbindParts(uid, signal);
    await this.#unfill(uid, signal);
    let mounted = await this.#mountedBelow(uid);
    if (mounted !== undefined && (await this.#kindOfEmptyDirs(uid)) === 'directory') {
      const inUse = await this.#unmountInside(this.emptyDirsOf(uid), signal);
      if (inUse !== undefined) return { kind: 'blocked', path: inUse, why: 'is mounted and in use' };
      mounted = await this.#mountedBelow(uid);
    }
    if (mounted !== undefined) return { kind: 'blocked', path: mounted, why: 'is mounted' };
    const kind = await this.#files.kindAt(this.of(uid));
    if (kind !== undefined && kind !== 'directory')
      return { kind: 'blocked', path: this.of(uid), why: 'is no directory' };
    await this.removeEmptyDirs(uid, signal);
    for (const [name, depth] of Object.entries(volumeTrees)) {
      const left = await this.#removeEmpty(posix.join(this.of(uid), name), depth);
      if (left !== undefined) return { kind: 'blocked', path: left, why: 'still has content of a volume' };
    }
    await this.#removeTree(this.of(uid));
    return { kind: 'removed' };
  }

  /** Rejects with VOLUME_REMOVE while anything is mounted below the pod's volumes, by whomever. */
  async checkUnmounted(uid: PodUid): Promise<void> {
    const mounted = await this.#mountedBelow(uid, '/volumes');
    if (mounted !== undefined) throw new KubelingError('VOLUME_REMOVE', `${mounted} is mounted`);
  }

  /** The names of the volumes of the pod that something is mounted at or in, sorted. */
  async mountedVolumes(uid: PodUid): Promise<readonly string[]> {
    const points = await this.#allMountedBelow(uid, '/volumes');
    const names = points.map((point) => point.split(`/pods/${uid}/volumes/`)[1]?.split('/')[1]);
    return [...new Set(names.filter((name) => name !== undefined))].sort();
  }

  async #mountedBelow(uid: PodUid, part = ''): Promise<string | undefined> {
    return (await this.#allMountedBelow(uid, part))[0];
  }

  /** The directory may lie behind a link, which mount points do not show; the UID tells them apart all the same. */
  async #allMountedBelow(uid: PodUid, part: string): Promise<readonly string[]> {
    const own = `/pods/${uid}${part}`;
    return (await this.#mountPoints()).filter((point) => point.endsWith(own) || point.includes(`${own}/`));
  }

  /** Removes the empty directories down to that depth; answers the first that is not, or is none. No link is followed. */
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

/** The UIDs that have a directory. Files, links and names that are not valid UIDs do not belong to the kubelet. */
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

/** Where something is mounted, as this process sees it. */
export async function mountPoints(machine: {
  readFile(path: string): Promise<string>;
}): Promise<readonly string[]> {
  return (await readMountTable((path) => machine.readFile(path))).map(({ mountPoint }) => mountPoint);
}
