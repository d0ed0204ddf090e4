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
  /** The directory that contains the pod directories. */
  readonly podsDir: string;
  /** Access to local files only, never to files on network mounts. */
  readonly files: Pick<VolumeFiles, 'kindAt' | 'names' | 'makeDirectory' | 'removeEmptyDirectory'>;
  readonly mounts: NetworkMounts;
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Enables the lazy unmount, as a last resort, of volumes whose server is dead; called for each
   * detached volume. Disabled if undefined.
   */
  readonly detached?: ((mountPoint: string, why: string) => void) | undefined;
}

export interface NfsVolume {
  /** The name of the PersistentVolume, or of the inline volume in the pod spec. */
  readonly name: string;
  readonly server: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly mountOptions: readonly string[];
}

/** Whether a volume that cannot be unmounted is detached if its server is dead. */
type LastResort = 'none' | 'detach-dead';

const directoryMode = 0o750;
/**
 * The maximum number of stacked mounts to remove: a killed process may have mounted a volume twice,
 * and kubelets create no more.
 */
const mostMounts = 4;

/**
 * Mounts NFS volumes, one mount per pod and volume. A server may stop responding at any time; then
 * only the pods that use it wait.
 */
export class NfsVolumes {
  readonly #deps: NfsVolumesDeps;
  readonly #operations: VolumeOperations;

  constructor(deps: NfsVolumesDeps) {
    this.#deps = deps;
    this.#operations = new VolumeOperations(deps);
  }

  /** The number of volumes with a running or failed operation. */
  get size(): number {
    return this.#operations.size;
  }

  /** Returns the path in the pod directory at which the volume is mounted. */
  mountPathOf(uid: PodUid, volume: string): string {
    return new PodVolumePaths(this.#deps.podsDir, uid).nfsVolume(volume);
  }

  /**
   * Mounts the volume for the pod. Idempotent, also after a restart of the kubelet and while an
   * earlier attempt still hangs.
   */
  async setUp({ metadata: { uid } }: Pod, volume: NfsVolume, signal: AbortSignal): Promise<void> {
    const mountPoint = this.mountPathOf(uid, volume.name);
    const foreign = await firstNonDirectory(this.#deps.files, this.#chainTo(uid));
    if (foreign !== undefined) throw unusable(`${foreign} is not a directory`);
    const source = nfsSource(volume);
    const wanted = volume.readOnly ? ['ro', ...volume.mountOptions] : volume.mountOptions;
    const options = [...new Set(checkedMountOptions(wanted))].toSorted();
    const mount = { type: 'nfs' as const, source, directory: mountPoint, options };
    const work = (inner: AbortSignal) => this.#mount(mount, inner);
    const what = `mounting ${source}`;
    await this.#operations.run(mountPoint, { name: 'mount', what, work }, signal);
  }

  /**
   * Unmounts all NFS volumes of a pod. Call once no container of the pod runs; also for pods of
   * which only the UID is known. Idempotent. Data on the server is kept. Rejects with VOLUME_REMOVE
   * that names the paths not unmounted yet.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { files, podsDir } = this.#deps;
    const { nfsVolumes } = new PodVolumePaths(podsDir, uid);
    const end = await endOf(files, this.#chainTo(uid));
    if (end === 'foreign') return;
    const names = end === 'ours' ? await files.names(nfsVolumes) : [];
    const found = names.map((name) => posix.join(nfsVolumes, name));
    // Includes the mount paths of volumes whose mount failed: they may have no directory, only a
    // recorded back-off.
    const tried = this.#operations.paths().filter((mountPoint) => posix.dirname(mountPoint) === nfsVolumes);
    const mountPoints = [...new Set([...found, ...tried])];
    const problems = await Promise.all(mountPoints.map((mountPoint) => this.#tryRemove(mountPoint, signal)));
    const reported = problems.filter((problem) => problem !== undefined);
    if (reported.length > 0) throw removalBlocked(reported);
    if (end === 'ours') await files.removeEmptyDirectory(nfsVolumes);
  }

  async #tryRemove(mountPoint: string, signal: AbortSignal): Promise<string | undefined> {
    const work = (inner: AbortSignal) => this.#removeMountPoint(mountPoint, inner, 'detach-dead');
    try {
      await this.#operations.run(
        mountPoint,
        { name: 'unmount', what: `unmounting ${mountPoint}`, work },
        signal,
      );
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return describeError(error);
    }
  }

  #chainTo(uid: PodUid): DirectoryChain {
    const { pod, volumes, nfsVolumes } = new PodVolumePaths(this.#deps.podsDir, uid);
    return [pod, volumes, nfsVolumes];
  }

  async #mount(mount: NetworkMount, signal: AbortSignal): Promise<void> {
    const { files, mounts } = this.#deps;
    const { directory: mountPoint } = mount;
    if (await mounts.isMounted(mountPoint)) {
      if ((await mounts.check(mountPoint, signal)) === 'answers') return;
      await this.#unmount(mountPoint, signal);
    }
    await files.makeDirectory(mountPoint, directoryMode);
    await mounts.mount(mount, signal).catch(async (error: unknown) => {
      // Undoes the mount with a separate abort signal, so that cancelling the caller leaves no
      // half-finished mount.
      await this.#undo(mountPoint, error, new AbortController().signal);
      throw error;
    });
  }

  async #undo(mountPoint: string, why: unknown, signal: AbortSignal): Promise<void> {
    await this.#removeMountPoint(mountPoint, signal).catch((error: unknown) => {
      throw unusable(`${describeError(why)}; the mount cannot be undone: ${describeError(error)}`);
    });
  }

  async #removeMountPoint(mountPoint: string, signal: AbortSignal, last: LastResort = 'none'): Promise<void> {
    await this.#unmount(mountPoint, signal, last);
    // Only empty directories are removed: the file system of a detached mount may still be written
    // by a process with open files.
    if ((await this.#deps.files.removeEmptyDirectory(mountPoint)) === 'not-empty')
      throw removalBlocked([`${mountPoint} has content that was not put there by this node`]);
  }

  async #unmount(mountPoint: string, signal: AbortSignal, last: LastResort = 'none'): Promise<void> {
    const { mounts, clock } = this.#deps;
    for (let left = mostMounts; left > 0 && (await mounts.isMounted(mountPoint)); left--) {
      const work = unmountWithRetries(clock, mountPoint, () => this.#unmountOnce(mountPoint, signal), signal);
      if (last === 'none') await work;
      else await work.catch((error: unknown) => this.#detachUnresponsive(mountPoint, error, signal));
    }
  }

  /**
   * Detaches the volume if its server is dead and detaching is enabled; otherwise rejects with the
   * unmount error.
   */
  async #detachUnresponsive(mountPoint: string, why: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { mounts, detached } = this.#deps;
    if (detached === undefined || !(await this.#isUnresponsive(mountPoint, signal))) throw why;
    if ((await mounts.unmount(mountPoint, 'lazy', signal)) === 'busy') throw why;
    detached(mountPoint, describeError(why));
  }

  async #isUnresponsive(mountPoint: string, signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.#deps.mounts.check(mountPoint, signal)) === 'broken';
    } catch (error) {
      signal.throwIfAborted();
      if (isKind(error, 'DeadlineExceeded')) return true;
      throw error;
    }
  }

  /**
   * Unmounts by force, which aborts requests to an unresponsive server; does nothing while the
   * volume is in use.
   */
  async #unmountOnce(mountPoint: string, signal: AbortSignal): Promise<'done' | 'busy'> {
    const { mounts } = this.#deps;
    try {
      return await mounts.unmount(mountPoint, 'plain', signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubelingError)) throw error;
      return await mounts.unmount(mountPoint, 'force', signal);
    }
  }
}

/** Matches host names and IPv4 addresses; a match never starts with a hyphen. */
const hostName = /^\w[\w.-]*$/;
const longestHost = 253;
const longestPath = 4096;

/**
 * Builds the source argument of mount(8) and `mount.nfs`. The API server only requires a server and
 * a path with a leading slash, and both programs read a source with a leading hyphen as an option,
 * so both are validated here. `..` components stay: the server resolves them below its own root and
 * the kernel below that of the mount. Throws VOLUME_UNUSABLE.
 */
export function nfsSource({ server, path }: { readonly server: string; readonly path: string }): string {
  if (!path.startsWith('/')) throw wrong('nfs.path', 'an absolute path', path);
  if (hasControlCharacters(path)) throw wrong('nfs.path', 'without control characters', path);
  if (path.length > longestPath) throw wrong('nfs.path', `at most ${longestPath} characters long`, path);
  return `${serverName(server)}:${path}`;
}

/** Puts IPv6 addresses in brackets, because they contain colons. */
function serverName(server: string): string {
  const address = /^\[(.*)\]$/.exec(server)?.[1] ?? server;
  if (isIPv6(address)) return `[${address}]`;
  if (server.length <= longestHost && hostName.test(server)) return server;
  throw wrong('nfs.server', 'a host name, an IPv4 address or an IPv6 address', server);
}

/** The parameters of a network mount. */
export interface NetworkMount {
  readonly type: 'nfs';
  /** The source argument of mount(8). */
  readonly source: string;
  readonly directory: string;
  readonly options: readonly string[];
}

export type Unmounting = 'plain' | 'force' | 'lazy';

/**
 * Mounts of file systems that may stop responding at any time. This process never accesses them:
 * each method has a deadline, and a program that misses it is abandoned.
 */
export interface NetworkMounts {
  /** Reads the kernel's mount table. */
  isMounted(directory: string): Promise<boolean>;
  /**
   * Rejects with VOLUME_UNUSABLE, or DEADLINE_EXCEEDED if it hangs. After any rejection the mount
   * may exist or appear later.
   */
  mount(mount: NetworkMount, signal: AbortSignal): Promise<void>;
  /**
   * Unmounts only the top mount. `force` aborts all pending requests to the server. `lazy` only
   * detaches the mount: processes with open files keep it for an unknown time. Rejects with
   * VOLUME_REMOVE, or DEADLINE_EXCEEDED if it hangs.
   */
  unmount(directory: string, how: Unmounting, signal: AbortSignal): Promise<'done' | 'busy'>;
  /**
   * Checks whether the mount is usable. Rejects with DEADLINE_EXCEEDED while the server does not
   * respond.
   */
  check(directory: string, signal: AbortSignal): Promise<'answers' | 'broken'>;
}
