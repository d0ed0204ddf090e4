import { isIPv6 } from 'node:net';
import { posix } from 'node:path';
import {
  type Clock,
  describeError,
  hasControlCharacters,
  isKind,
  KubelingError,
  type Random,
} from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { removalBlocked, unmountWithRetries } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { checkedMountOptions, wrong } from '../manager/mount-options.ts';
import { VolumeOperations } from '../manager/volume-operations.ts';
import { unusable } from '../projected/payload.ts';
import { type DirectoryChain, endOf, firstNonDirectory, PodVolumePaths } from '../projected/payload-paths.ts';

export interface NfsVolumesDeps {
  /** Where the directories of pods are. */
  readonly podsDir: string;
  /** For what is not mounted from elsewhere. */
  readonly files: Pick<VolumeFiles, 'kindAt' | 'names' | 'makeDirectory' | 'removeEmptyDirectory'>;
  readonly mounts: NetworkMounts;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Whether a volume whose server is dead, and that nothing unmounts, is taken out of sight at last; told of each. Never
   * unless given.
   */
  readonly detached?: ((place: string, why: string) => void) | undefined;
}

export interface NfsVolume {
  /** Of the PersistentVolume, or of the volume in the pod. */
  readonly name: string;
  readonly server: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly mountOptions: readonly string[];
}

/** What is done about a volume that nothing unmounts. */
type LastResort = 'none' | 'detach-dead';

const directoryMode = 0o750;
/** Whoever was killed at the wrong moment mounted twice at most; more than this is not ours. */
const mostMounts = 4;

/**
 * Directories of other machines, mounted for each pod at a place of its own. Their server may stop answering at any
 * moment: then the pods that have them wait, and nobody else.
 */
export class NfsVolumes {
  readonly #deps: NfsVolumesDeps;
  readonly #operations: VolumeOperations;

  constructor(deps: NfsVolumesDeps) {
    this.#deps = deps;
    this.#operations = new VolumeOperations(deps);
  }

  /** How many volumes something is being done to, or could not be done. */
  get size(): number {
    return this.#operations.size;
  }

  /** Where the pod is shown the volume. */
  placeOf(uid: PodUid, volume: string): string {
    return new PodVolumePaths(this.#deps.podsDir, uid).nfsVolume(volume);
  }

  /** Mounts the volume for the pod. May be repeated, by another process too, and while an earlier attempt still hangs. */
  async setUp({ metadata: { uid } }: Pod, volume: NfsVolume, signal: AbortSignal): Promise<void> {
    const place = this.placeOf(uid, volume.name);
    const foreign = await firstNonDirectory(this.#deps.files, this.#waysTo(uid));
    if (foreign !== undefined) throw unusable(`${foreign} is no directory`);
    const source = nfsSource(volume);
    const wanted = volume.readOnly ? ['ro', ...volume.mountOptions] : volume.mountOptions;
    const options = [...new Set(checkedMountOptions(wanted))].toSorted();
    const mount = { type: 'nfs' as const, source, directory: place, options };
    const work = (inner: AbortSignal) => this.#mount(mount, inner);
    const what = `mounting ${source}`;
    await this.#operations.run(place, { name: 'mount', what, work }, signal);
  }

  /**
   * To be called once nothing of the pod runs, also for pods of which nothing but the UID is known; may be repeated. What
   * the server has stays. Rejects with VOLUME_REMOVE, naming the paths, for what cannot be unmounted, or not yet.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { files, podsDir } = this.#deps;
    const { nfsVolumes } = new PodVolumePaths(podsDir, uid);
    const end = await endOf(files, this.#waysTo(uid));
    if (end === 'foreign') return;
    const names = end === 'ours' ? await files.names(nfsVolumes) : [];
    const found = names.map((name) => posix.join(nfsVolumes, name));
    // What could not be mounted has left nothing but the time of the next attempt.
    const tried = this.#operations.places().filter((place) => posix.dirname(place) === nfsVolumes);
    const places = [...new Set([...found, ...tried])];
    const problems = await Promise.all(places.map((place) => this.#tryRemove(place, signal)));
    const told = problems.filter((problem) => problem !== undefined);
    if (told.length > 0) throw removalBlocked(told);
    if (end === 'ours') await files.removeEmptyDirectory(nfsVolumes);
  }

  async #tryRemove(place: string, signal: AbortSignal): Promise<string | undefined> {
    const work = (inner: AbortSignal) => this.#takeAway(place, inner, 'detach-dead');
    try {
      await this.#operations.run(place, { name: 'unmount', what: `unmounting ${place}`, work }, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return describeError(error);
    }
  }

  #waysTo(uid: PodUid): DirectoryChain {
    const { pod, volumes, nfsVolumes } = new PodVolumePaths(this.#deps.podsDir, uid);
    return [pod, volumes, nfsVolumes];
  }

  async #mount(mount: NetworkMount, signal: AbortSignal): Promise<void> {
    const { files, mounts } = this.#deps;
    const { directory: place } = mount;
    if (await mounts.isMounted(place)) {
      if ((await mounts.look(place, signal)) === 'answers') return;
      await this.#unmount(place, signal);
    }
    await files.makeDirectory(place, directoryMode);
    await mounts.mount(mount, signal).catch(async (error: unknown) => {
      // Under a signal of its own: what is half mounted is nothing that anybody may find.
      await this.#undo(place, error, new AbortController().signal);
      throw error;
    });
  }

  async #undo(place: string, why: unknown, signal: AbortSignal): Promise<void> {
    await this.#takeAway(place, signal).catch((error: unknown) => {
      throw unusable(`${describeError(why)}; and what is there now stays: ${describeError(error)}`);
    });
  }

  async #takeAway(place: string, signal: AbortSignal, last: LastResort = 'none'): Promise<void> {
    await this.#unmount(place, signal, last);
    // Nothing but an empty directory ever goes: whoever has what was mounted there may still write to it.
    if ((await this.#deps.files.removeEmptyDirectory(place)) === 'not-empty')
      throw removalBlocked([`${place} has content that was not put there by this node`]);
  }

  async #unmount(place: string, signal: AbortSignal, last: LastResort = 'none'): Promise<void> {
    const { mounts, clock } = this.#deps;
    for (let left = mostMounts; left > 0 && (await mounts.isMounted(place)); left--) {
      const work = unmountWithRetries(clock, place, () => this.#unmountOnce(place, signal), signal);
      if (last === 'none') await work;
      else await work.catch((error: unknown) => this.#detachDead(place, error, signal));
    }
  }

  /** Rejects with why it could not be unmounted where it is not dead, or nobody wants this. */
  async #detachDead(place: string, why: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { mounts, detached } = this.#deps;
    if (detached === undefined || !(await this.#isDead(place, signal))) throw why;
    if ((await mounts.unmount(place, 'lazy', signal)) === 'busy') throw why;
    detached(place, describeError(why));
  }

  async #isDead(place: string, signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.#deps.mounts.look(place, signal)) === 'broken';
    } catch (error) {
      signal.throwIfAborted();
      if (isKind(error, 'DeadlineExceeded')) return true;
      throw error;
    }
  }

  /** What is in use is left to its users; whoever waits for a server that does not answer is sent away. */
  async #unmountOnce(place: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    const { mounts } = this.#deps;
    try {
      return await mounts.unmount(place, 'plain', signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubelingError)) throw error;
      return await mounts.unmount(place, 'force', signal);
    }
  }
}

/** Also the dotted form of IPv4. Never with a leading hyphen. */
const hostName = /^\w[\w.-]*$/;
const longestHost = 253;
const longestPath = 4096;

/**
 * What mount(8) and `mount.nfs` are given as source. The API server only asks for a server and for a path with a leading
 * slash, and both programs take a source with a leading hyphen for an option, so they are checked here. Steps such as `..`
 * stay: the server resolves them below its own root, and the kernel below that of the mount. Throws VOLUME_UNUSABLE.
 */
export function nfsSource({ server, path }: { readonly server: string; readonly path: string }): string {
  if (!path.startsWith('/')) throw wrong('nfs.path', 'an absolute path', path);
  if (hasControlCharacters(path)) throw wrong('nfs.path', 'without control characters', path);
  if (path.length > longestPath) throw wrong('nfs.path', `at most ${longestPath} characters long`, path);
  return `${serverName(server)}:${path}`;
}

/** Addresses of IPv6 are put in brackets, as they have colons of their own. */
function serverName(server: string): string {
  const address = /^\[(.*)\]$/.exec(server)?.[1] ?? server;
  if (isIPv6(address)) return `[${address}]`;
  if (server.length <= longestHost && hostName.test(server)) return server;
  throw wrong('nfs.server', 'a host name, an IPv4 address or an IPv6 address', server);
}

/** What is to be mounted from elsewhere. */
export interface NetworkMount {
  readonly type: 'nfs';
  /** As mount(8) takes it. */
  readonly source: string;
  readonly directory: string;
  readonly options: readonly string[];
}

export type Unmounting = 'plain' | 'force' | 'lazy';

/**
 * Mounts of file systems that may stop answering at any moment. Nothing of this process ever touches what is mounted:
 * each method ends in its time, and a program that does not is left behind.
 */
export interface NetworkMounts {
  /** As the kernel lists it. */
  isMounted(directory: string): Promise<boolean>;
  /**
   * Rejects with VOLUME_UNUSABLE, or DEADLINE_EXCEEDED if it hangs. Whatever it rejects with, it may be mounted, or be
   * yet.
   */
  mount(mount: NetworkMount, signal: AbortSignal): Promise<void>;
  /**
   * Only what was mounted last. `force` gives up all that is still asked of the server. `lazy` only takes it out of
   * sight: who has it open has it on, and nobody knows when that ends. Rejects with VOLUME_REMOVE, or DEADLINE_EXCEEDED
   * if it hangs.
   */
  unmount(directory: string, how: Unmounting, signal: AbortSignal): Promise<'done' | 'busy'>;
  /** Whether what is mounted there can be used at all. Rejects with DEADLINE_EXCEEDED while nobody answers. */
  look(directory: string, signal: AbortSignal): Promise<'answers' | 'broken'>;
}
