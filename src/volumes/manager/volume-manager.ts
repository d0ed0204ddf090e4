import { posix } from 'node:path';
import type { PodDirectories } from '../../checkpoints/index.ts';
import type { Volume } from '../../kinds/index.ts';
import {
  type Clock,
  describeError,
  isKind,
  KeyedBackoff,
  KubelingError,
  LogOnce,
  type Random,
} from '../../lib/index.ts';
import type { Pod, PodJournal, PodUid } from '../../pods/index.ts';
import type { RuntimeFiles } from '../../runtime/index.ts';
import type { MeasuredDirectory } from '../../stats/index.ts';
import type { ClaimProblem } from '../claims/bound-volume.ts';
import { type ClaimVolumes, isClaimed } from '../claims/claim-volumes.ts';
import { isPastLimit } from '../csi/csi-attach.ts';
import type { CsiVolumes } from '../csi/csi-volumes.ts';
import { isOfDriver } from '../csi/in-tree-volumes.ts';
import { DiskEmptyDirs, type LimitDirectory } from '../emptydir/disk-empty-dirs.ts';
import type { MemoryEmptyDirs } from '../emptydir/memory-empty-dirs.ts';
import { prepareHostPath } from '../hostpath/host-path.ts';
import type { NfsVolumes } from '../nfs/nfs-volumes.ts';
import { payloadKindOf } from '../projected/payload-paths.ts';
import type { PayloadVolumes } from '../projected/payload-volumes.ts';
import type { RefreshRetries } from './mount-attempts.ts';
import { MountAttempts, namesOf, noRoom, unable } from './mount-attempts.ts';
import { kindOf, type PathVolume, pluginOf, pluginsOfVolume, type ResolvedVolume } from './prepare-volume.ts';
import { type StorageObserver, timed, type VolumePlugin } from './volume-metrics.ts';
import { mapConcurrently } from './volume-operations.ts';
import { mountedClaims, usedVolumes, volumePaths } from './volume-paths.ts';
import type { MountedClaim } from './volume-space.ts';

/**
 * The maximum number of memory-backed volumes per pod: each is a mount, and the kernel limits the
 * mounts of the node for all pods together.
 */
const maxMemoryVolumes = 256;
/** The back-off of failed volumes; the cause may disappear without notification. */
const retries = { baseMs: 500, maxMs: 10_000, jitter: 0.2 };
/**
 * The message of the Go kubelet: the git-repo plugin would run commands of the repository on the
 * host, so its feature gate is locked to false.
 */
const gitRepoDisabled =
  'git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`';

/** The plugin of a mounted volume, and the kind of the mount. */
interface UsedPlugin {
  readonly kind: ResolvedVolume['kind'];
  readonly plugin: VolumePlugin;
}

/** A volume problem that prevents the start of the pod's containers. */
interface Problem {
  readonly volume: string;
  /** The message of the pod event. */
  readonly message: string;
  readonly retryAtMs?: number | undefined;
  /**
   * `none` if the volume cannot be attached because the node has reached its attach limit;
   * otherwise undefined.
   */
  readonly room?: 'none' | undefined;
}

/** The payload volumes: configMap, secret, downwardAPI and projected. */
export type FilledVolumes = Pick<PayloadVolumes, 'of' | 'prepare' | 'remove'>;

/** Memory-backed emptyDir volumes. */
export type DirectoriesInMemory = Pick<MemoryEmptyDirs, 'create' | 'remove'>;

/** PersistentVolumes used by claims. */
export type ClaimedVolumes = Pick<ClaimVolumes, 'of' | 'groupsOf' | 'prepare' | 'refresh' | 'remove'>;

/** Inline CSI volumes of pods. */
export type DriverVolumes = Pick<CsiVolumes, 'inline' | 'setUpInline' | 'maintainInline' | 'remove'>;

/** NFS volumes. */
export type ServerVolumes = Pick<NfsVolumes, 'mountPathOf' | 'setUp' | 'remove'>;

/**
 * The plugins besides hostPath and disk-backed emptyDir. A volume whose plugin is missing here is
 * rejected.
 */
export interface VolumePlugins {
  readonly filled?: FilledVolumes | undefined;
  readonly inMemory?: DirectoriesInMemory | undefined;
  readonly claimed?: ClaimedVolumes | undefined;
  /** Observes the durations of volume operations; they are not measured if undefined. */
  readonly times?:
    | { readonly clock: Clock; readonly random: Random; readonly observe: StorageObserver }
    | undefined;
  readonly csi?: DriverVolumes | undefined;
  readonly nfs?: ServerVolumes | undefined;
  /**
   * Retries failed refreshes of volume content with back-off; if undefined, they are retried at the
   * next sync.
   */
  readonly renewals?: Pick<RefreshRetries, 'failed' | 'forget'> | undefined;
  /**
   * Sets the size limit of a disk-backed emptyDir; emptyDirs on disk have no limit if undefined.
   */
  readonly limit?: LimitDirectory | undefined;
}

/** Sets up, refreshes and removes the volumes of pods. */
export class VolumeManager {
  readonly #directories: PodDirectories;
  readonly #files: RuntimeFiles;
  readonly #journal: Pick<PodJournal, 'event'>;
  readonly #filled: FilledVolumes | undefined;
  readonly #onDisk: DiskEmptyDirs;
  readonly #inMemory: DirectoriesInMemory | undefined;
  readonly #claimed: ClaimedVolumes | undefined;
  readonly #times: VolumePlugins['times'];
  /** For each pod the plugins of its mounted volumes, one entry per volume. */
  readonly #mounted = new Map<PodUid, readonly UsedPlugin[]>();
  /** Logs once why the volumes of a terminated pod cannot be removed. */
  readonly #cleanupProblems = new LogOnce();
  readonly #csi: DriverVolumes | undefined;
  readonly #attempts = new MountAttempts();
  readonly #retries: KeyedBackoff<PodUid> | undefined;
  readonly #nfs: ServerVolumes | undefined;
  readonly #renewals: VolumePlugins['renewals'];

  constructor(
    directories: PodDirectories,
    files: RuntimeFiles,
    journal: Pick<PodJournal, 'event'>,
    { filled, inMemory, claimed, csi, nfs, times, renewals, limit }: VolumePlugins = {},
  ) {
    this.#renewals = renewals;
    this.#directories = directories;
    this.#files = files;
    this.#journal = journal;
    this.#filled = filled;
    this.#onDisk = new DiskEmptyDirs({ podsDir: directories.podsDir, files, limit });
    this.#inMemory = inMemory;
    this.#claimed = claimed;
    this.#times = times;
    this.#csi = csi;
    this.#retries = times && new KeyedBackoff({ policy: retries, random: times.random });
    this.#nfs = nfs;
  }

  /** Returns the locations of the pod's volumes; volumes of unsupported types are omitted. */
  of(pod: Pod): ReadonlyMap<string, ResolvedVolume> {
    const found = new Map<string, ResolvedVolume>([
      ...(this.#filled?.of(pod) ?? []),
      ...(this.#claimed?.of(pod) ?? []),
    ]);
    for (const volume of pod.spec.volumes ?? []) {
      const { name, hostPath, emptyDir, nfs } = volume;
      if (nfs !== undefined && this.#nfs !== undefined) {
        const mountPoint = this.#nfs.mountPathOf(pod.metadata.uid, name);
        found.set(name, { kind: 'path', hostPath: mountPoint, readOnly: nfs.readOnly === true });
      }
      const inline = this.#inline(pod, volume);
      if (inline !== undefined) found.set(name, inline);
      if (hostPath !== undefined) found.set(name, { kind: 'path', hostPath: hostPath.path });
      else if (emptyDir !== undefined) found.set(name, { kind: 'path', hostPath: this.#emptyDir(pod, name) });
    }
    return found;
  }

  /** Returns the supplementary groups that the pod's volumes require. */
  groupsOf(uid: PodUid): readonly number[] {
    return this.#claimed?.groupsOf(uid) ?? [];
  }

  /**
   * Sets up all volumes that a container uses, concurrently, so that a hanging volume blocks no
   * other. If any volume fails, reports an event for each failed volume and rejects with
   * VOLUME_UNUSABLE, or with VOLUME_ATTACH_LIMIT if a retry on this node is useless: the pod starts
   * only with all its volumes.
   */
  async prepare(pod: Pod, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    const used = usedVolumes(pod);
    const wanted = (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
    const attempt = this.#attempts.begin(
      uid,
      wanted.map(({ name }) => name),
    );
    const surplus = wanted.filter(isInMemory)[maxMemoryVolumes];
    if (surplus !== undefined) {
      const why = `a pod may use at most ${maxMemoryVolumes} volumes in memory: secrets, projected volumes, downward API volumes and emptyDir volumes with a medium`;
      const message = this.#reportProblem(pod, surplus.name, why);
      attempt.end([{ volume: surplus.name, message }]);
      throw this.#unusable(uid, [{ volume: surplus.name, message }]);
    }
    const done = (volume: string) => attempt.done(volume);
    const [plain, filled, claims] = await Promise.all([
      this.#setUpPlain(pod, wanted, done, signal),
      this.#fill(pod, signal, done),
      this.#setUpClaimed(pod, done, signal),
    ]);
    const problems: Problem[] = [...plain, ...filled];
    problems.push(...this.#reportClaimProblems(pod, claims, problems));
    attempt.end(problems);
    const roomless = problems.find(({ room }) => room === 'none');
    if (roomless !== undefined) throw noRoom(roomless.message);
    if (problems.length > 0) throw this.#unusable(uid, problems);
    this.#retries?.delete(uid);
    this.#mounted.set(uid, this.#usedBy(pod));
  }

  /**
   * Reports a mount timeout with the last error of each volume; does nothing if the pod waits for
   * no volume.
   */
  reportTimedOut(pod: Pod): void {
    const message = this.#attempts.late(pod.metadata.uid);
    if (message !== undefined) this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
  }

  async #setUpPlain(
    pod: Pod,
    volumes: readonly Volume[],
    done: (volume: string) => void,
    signal: AbortSignal,
  ): Promise<readonly Problem[]> {
    const filled = this.#filled?.of(pod);
    const isElsewhere = (volume: Volume) =>
      filled?.has(volume.name) === true || (this.#claimed !== undefined && isClaimed(volume));
    const own = volumes.filter((volume) => !isElsewhere(volume));
    const problems = await mapConcurrently(own, async (volume) => {
      const problem = await this.#trySetUp(pod, volume, signal);
      if (problem === undefined) done(volume.name);
      return problem;
    });
    return problems.filter((problem) => problem !== undefined);
  }

  /**
   * The time of the next attempt to set up the volumes: soon at first, then with growing back-off.
   */
  #unusable(uid: PodUid, problems: readonly Problem[]): KubelingError {
    const retries = problems.flatMap(({ retryAtMs }) => (retryAtMs === undefined ? [] : [retryAtMs]));
    const nowMs = this.#times?.clock.monotonicMs();
    if (nowMs !== undefined) retries.push(nowMs + (this.#retries?.fail(uid, { nowMs }) ?? 0));
    const details = retries.length === 0 ? {} : { retryAtMs: Math.min(...retries) };
    const message = [...new Set(problems.map((problem) => problem.message))].join('; ');
    return new KubelingError('VOLUME_UNUSABLE', message, { details });
  }

  async #trySetUp(pod: Pod, volume: Volume, signal: AbortSignal): Promise<Problem | undefined> {
    const { name } = volume;
    try {
      const work = () => this.#setUpVolume(pod, volume, signal);
      const problem = await this.#timed(
        'volume_mount',
        pluginsOfVolume(volume, this.#csi?.inline(pod, volume)?.plugin),
        work,
      );
      return problem === undefined
        ? undefined
        : { volume: name, message: this.#reportProblem(pod, name, problem) };
    } catch (error) {
      signal.throwIfAborted();
      const message = this.#reportFailure(pod, name, error);
      const retryAtMs = error instanceof KubelingError ? error.details['retryAtMs'] : undefined;
      return {
        volume: name,
        message,
        ...(typeof retryAtMs === 'number' ? { retryAtMs } : {}),
        ...(isPastLimit(error) ? { room: 'none' } : {}),
      };
    }
  }

  /** Refreshes the payload volumes of a running pod; existing content stays if that fails. */
  async refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#fill(pod, signal);
    await this.#claimed?.refresh(pod, signal);
    this.#mounted.set(pod.metadata.uid, this.#usedBy(pod));
    const used = usedVolumes(pod);
    for (const volume of pod.spec.volumes ?? [])
      if (isOfDriver(volume) && used.has(volume.name)) this.#csi?.maintainInline(pod, volume);
  }

  /** Returns the plugins of the volumes that at least one container uses. */
  pluginsOf(pod: Pod): readonly string[] {
    return this.#usedBy(pod).map(({ plugin }) => plugin.name);
  }

  #usedBy(pod: Pod): readonly UsedPlugin[] {
    const used = usedVolumes(pod);
    const found = [...this.of(pod)].filter(([name]) => used.has(name));
    return found.map(([, volume]) => ({
      kind: volume.kind,
      plugin: pluginOf(this.#directories.of(pod.metadata.uid), volume),
    }));
  }

  /** Returns the plugins of the mounted volumes of all pods, one entry per volume. */
  mountedPlugins(): readonly string[] {
    return [...this.#mounted.values()].flat().map(({ plugin }) => plugin.name);
  }

  /**
   * Returns the mount paths of the pod's claims. Claims on hostPath volumes are omitted: they have
   * no capacity of their own.
   */
  claimsOf(pod: Pod): readonly MountedClaim[] {
    const isMounted = this.#mounted.has(pod.metadata.uid) && this.#claimed !== undefined;
    return isMounted ? mountedClaims(pod, this.#directories, this.#claimed.of(pod)) : [];
  }

  /** Returns the volumes whose usage is measured: all except hostPath and image volumes. */
  directoriesOf(pod: Pod): readonly MeasuredDirectory[] {
    return this.#mounted.has(pod.metadata.uid) ? volumePaths(pod, this.#directories, this.of(pod)) : [];
  }

  /** Volumes are set up concurrently: the pod waits only for the slowest. */
  async #setUpClaimed(
    pod: Pod,
    done: (volume: string) => void,
    signal: AbortSignal,
  ): Promise<readonly ClaimProblem[]> {
    if (this.#claimed === undefined) return [];
    const { clock, observe } = this.#times ?? {};
    const begin = clock?.monotonicMs() ?? 0;
    const problems = await this.#claimed.prepare(pod, signal, done);
    const failed = new Set(problems.map(({ volume }) => volume));
    const used = usedVolumes(pod);
    for (const [name, volume] of this.#claimed.of(pod)) {
      if (clock === undefined || !used.has(name)) continue;
      const outcome = failed.has(name) ? 'fail-unknown' : 'success';
      const operation = volume.kind === 'path' ? 'volume_mount' : 'map_volume';
      const ms = clock.monotonicMs() - begin;
      observe?.(operation, pluginOf(this.#directories.of(pod.metadata.uid), volume), { outcome, ms });
    }
    return problems;
  }

  #timed<T>(
    operation: Parameters<StorageObserver>[0],
    plugins: readonly VolumePlugin[],
    work: () => Promise<T>,
  ): Promise<T> {
    return this.#times === undefined ? work() : timed(this.#times, operation, plugins, work);
  }

  /**
   * Returns the problems that prevent the start of the pod. A failed refresh does not: the stale
   * content is complete.
   */
  async #fill(
    pod: Pod,
    signal: AbortSignal,
    done: (volume: string) => void = () => {},
  ): Promise<readonly Problem[]> {
    const problems = (await this.#filled?.prepare(pod, signal, done)) ?? [];
    const isOld = problems.some(({ content }) => content === 'earlier');
    this.#renewals?.[isOld ? 'failed' : 'forget'](pod.metadata.uid);
    return problems.flatMap(({ volume, message, content }) => {
      const isReported = this.#reportProblem(pod, volume, message);
      return content === 'none' ? [{ volume, message: isReported }] : [];
    });
  }

  /** Reports one event per mount failure, and one event for all unresolved claims together. */
  #reportClaimProblems(
    pod: Pod,
    problems: readonly ClaimProblem[],
    otherProblems: readonly Problem[],
  ): readonly Problem[] {
    const unmounted = problems.filter((problem) => problem.kind === 'unmounted');
    for (const { reason, message } of unmounted)
      this.#journal.event(pod, { type: 'Warning', reason, message });
    const unprocessed = problems.filter(({ kind }) => kind === 'unprocessed');
    if (unprocessed.length === 0) return unmounted;
    const failed = namesOf([...otherProblems, ...problems]);
    const causes = unprocessed.map((problem) => problem.message);
    const message = unable(failed, namesOf(unprocessed), causes);
    this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
    return [...unmounted, ...unprocessed.map(({ volume }) => ({ volume, message }))];
  }

  #reportProblem(pod: Pod, volume: string, problem: string): string {
    const message = `MountVolume.SetUp failed for volume "${volume}" : ${problem}`;
    this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
    return message;
  }

  /** An error with a stage already names the failed step. */
  #reportFailure(pod: Pod, volume: string, error: unknown): string {
    if (!(error instanceof KubelingError) || error.details['stage'] === undefined)
      return this.#reportProblem(pod, volume, describeError(error));
    const { message } = error;
    this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
    return message;
  }

  /**
   * Removes the volumes of a pod. Call once no container of the pod runs, and retry until it
   * resolves. hostPath content is kept. Reports one event per reason for which a volume cannot be
   * removed.
   */
  async remove(pod: Pod, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    try {
      const mounted = this.#mounted.get(uid) ?? [];
      const pluginsOf = (kind: ResolvedVolume['kind']) =>
        mounted.flatMap((used) => (used.kind === kind ? [used.plugin] : []));
      const unmount = () =>
        this.#timed('volume_unmount', pluginsOf('path'), () => this.#removeAll(pod, signal));
      await this.#timed('unmap_volume', pluginsOf('block'), unmount);
      this.#mounted.delete(uid);
      this.#attempts.forget(uid);
      this.#retries?.delete(uid);
      this.#renewals?.forget(uid);
      this.#cleanupProblems.clear(uid);
    } catch (error) {
      // A timeout is reported as an event; an abort is not.
      if (!isKind(error, 'DeadlineExceeded')) signal.throwIfAborted();
      const message = `Volumes of the pod cannot be removed: ${await this.#stillMounted(uid)}${describeError(error)}`;
      if (this.#cleanupProblems.isNew(uid, message))
        this.#journal.event(pod, { type: 'Warning', reason: 'FailedVolumeRemoval', message });
      throw error;
    }
  }

  async #removeAll({ metadata: { uid }, spec }: Pod, signal: AbortSignal): Promise<void> {
    await this.#directories.unmountSubPaths(uid, signal);
    await this.#filled?.remove(uid, signal);
    await this.#inMemory?.remove(uid, signal);
    await this.#csi?.remove(uid, signal, spec.volumes);
    await this.#nfs?.remove(uid, signal);
    await this.#claimed?.remove(uid, signal);
    await this.#directories.removeEmptyDirs(uid, signal);
    await this.#directories.checkUnmounted(uid);
  }

  async #stillMounted(uid: PodUid): Promise<string> {
    const names = await this.#directories.mountedVolumes(uid).catch(() => []);
    return names.length === 0 ? '' : `mounted volumes=[${names.join(' ')}]: `;
  }

  /** Sets up one volume. Returns why it cannot be set up; undefined on success. */
  async #setUpVolume(pod: Pod, volume: Volume, signal: AbortSignal): Promise<string | undefined> {
    const { name, hostPath, emptyDir, image, gitRepo, nfs } = volume;
    // The runtime pulls and mounts the image of an image volume when it creates the container.
    if (image !== undefined) return undefined;
    if (hostPath !== undefined) {
      await prepareHostPath(this.#files, hostPath);
      return undefined;
    }
    if (gitRepo !== undefined) return gitRepoDisabled;
    if (isOfDriver(volume) && this.#csi !== undefined) {
      if (usedVolumes(pod).has(name)) await this.#csi.setUpInline(pod, volume, signal);
      return undefined;
    }
    if (nfs !== undefined && this.#nfs !== undefined) {
      const { server, path, readOnly = false } = nfs;
      const nfsVolume = { name, server, path, readOnly, mountOptions: [] };
      if (usedVolumes(pod).has(name)) await this.#nfs.setUp(pod, nfsVolume, signal);
      return undefined;
    }
    if (emptyDir === undefined)
      return `volumes of the kind ${kindOf(volume)} are not supported by this node yet`;
    const { medium = '' } = emptyDir;
    if (medium !== '' && this.#inMemory !== undefined) {
      await this.#inMemory.create(pod, volume, signal);
      return undefined;
    }
    if (medium !== '')
      return `empty directories on the medium "${medium}" are not supported by this node yet`;
    await this.#onDisk.create(pod, volume, signal);
    return undefined;
  }

  #inline(pod: Pod, volume: Volume): PathVolume | undefined {
    const found = this.#csi?.inline(pod, volume);
    if (found === undefined) return undefined;
    const { hostPath, specName, readOnly, plugin } = found;
    return { kind: 'path', hostPath, specName, readOnly, relabel: !readOnly, plugin };
  }

  #emptyDir(pod: Pod, name: string): string {
    return posix.join(this.#directories.emptyDirs(pod.metadata.uid), name);
  }
}

function isInMemory(volume: Volume): boolean {
  return payloadKindOf(volume)?.medium === 'memory' || (volume.emptyDir?.medium ?? '') !== '';
}
