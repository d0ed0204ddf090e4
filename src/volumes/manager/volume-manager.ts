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
import type { PayloadVolumes } from '../projected/payload-volumes.ts';
import type { RefreshRetries } from './mount-attempts.ts';
import { MountAttempts, namesOf, noRoom, unable } from './mount-attempts.ts';
import { kindOf, type PathVolume, pluginOf, pluginsOfVolume, type ResolvedVolume } from './prepare-volume.ts';
import { type StorageObserver, timed, type VolumePlugin } from './volume-metrics.ts';
import { mapConcurrently } from './volume-operations.ts';
import { mountedClaims, usedVolumes, volumePaths } from './volume-paths.ts';
import type { MountedClaim } from './volume-space.ts';

/** What a volume waits for may come at any moment, and nobody tells. */
const retries = { baseMs: 500, maxMs: 10_000, jitter: 0.2 };
/** Whoever names the repository has commands of it run on the host; the gate is locked. */
const gitRepoDisabled =
  'git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`';

/** What mounts one of the volumes of a pod, and in which way. */
interface UsedPlugin {
  readonly kind: ResolvedVolume['kind'];
  readonly plugin: VolumePlugin;
}

/** What keeps containers from starting. */
interface Problem {
  readonly volume: string;
  /** As it was told. */
  readonly message: string;
  readonly retryAtMs?: number | undefined;
  /** Whether the node has no room for it, and will not have any soon. */
  readonly room?: 'none' | undefined;
}

/** Volumes that are filled from here, such as config maps. */
export type FilledVolumes = Pick<PayloadVolumes, 'of' | 'make' | 'remove'>;

/** Empty directories that lie in memory. */
export type DirectoriesInMemory = Pick<MemoryEmptyDirs, 'make' | 'remove'>;

/** Volumes that pods have by claims. */
export type ClaimedVolumes = Pick<ClaimVolumes, 'of' | 'groupsOf' | 'make' | 'refresh' | 'remove'>;

/** Volumes that drivers mount. */
export type DriverVolumes = Pick<CsiVolumes, 'inline' | 'setUpInline' | 'maintainInline' | 'remove'>;

/** Volumes that other machines have. */
export type ServerVolumes = Pick<NfsVolumes, 'placeOf' | 'setUp' | 'remove'>;

/** What kinds of volumes besides paths of the host and empty directories on the disk of the pods; none that is left out. */
export interface VolumePlugins {
  readonly filled?: FilledVolumes | undefined;
  readonly inMemory?: DirectoriesInMemory | undefined;
  readonly claimed?: ClaimedVolumes | undefined;
  /** How long it takes to mount and unmount is told nobody unless given. */
  readonly times?:
    | { readonly clock: Clock; readonly random: Random; readonly observe: StorageObserver }
    | undefined;
  readonly csi?: DriverVolumes | undefined;
  readonly nfs?: ServerVolumes | undefined;
  /** Content that could not be renewed is tried again only with the next look at the pod unless given. */
  readonly renewals?: Pick<RefreshRetries, 'failed' | 'forget'> | undefined;
  /** Holds empty directories on the disk to their size; none is unless given. */
  readonly limit?: LimitDirectory | undefined;
}

/** The volumes of pods: paths of the host, empty directories on the disk of the pods, and others. */
export class VolumeManager {
  readonly #directories: PodDirectories;
  readonly #files: RuntimeFiles;
  readonly #journal: Pick<PodJournal, 'event'>;
  readonly #filled: FilledVolumes | undefined;
  readonly #onDisk: DiskEmptyDirs;
  readonly #inMemory: DirectoriesInMemory | undefined;
  readonly #claimed: ClaimedVolumes | undefined;
  readonly #times: VolumePlugins['times'];
  /** The plugins of what each pod has, as many times as there are volumes. */
  readonly #mounted = new Map<PodUid, readonly UsedPlugin[]>();
  /** Why volumes of pods that have ended stay. */
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

  /** Where each is to be found; a volume of another kind is missing from the answer. */
  of(pod: Pod): ReadonlyMap<string, ResolvedVolume> {
    const found = new Map<string, ResolvedVolume>([
      ...(this.#filled?.of(pod) ?? []),
      ...(this.#claimed?.of(pod) ?? []),
    ]);
    for (const volume of pod.spec.volumes ?? []) {
      const { name, hostPath, emptyDir, nfs } = volume;
      if (nfs !== undefined && this.#nfs !== undefined) {
        const place = this.#nfs.placeOf(pod.metadata.uid, name);
        found.set(name, { kind: 'path', hostPath: place, readOnly: nfs.readOnly === true });
      }
      const inline = this.#inline(pod, volume);
      if (inline !== undefined) found.set(name, inline);
      if (hostPath !== undefined) found.set(name, { kind: 'path', hostPath: hostPath.path });
      else if (emptyDir !== undefined) found.set(name, { kind: 'path', hostPath: this.#emptyDir(pod, name) });
    }
    return found;
  }

  /** The groups that users of the pod's volumes must be in, whatever the pod says. */
  groupsOf(uid: PodUid): readonly number[] {
    return this.#claimed?.groupsOf(uid) ?? [];
  }

  /**
   * Rejects with VOLUME_UNUSABLE, or VOLUME_ATTACH_LIMIT where waiting is in vain, after an event for each volume that
   * cannot be had: without all the pod must not start. They are made beside each other, so that one that does not come
   * keeps no other; one that no container uses is not.
   */
  async make(pod: Pod, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    const used = usedVolumes(pod);
    const wanted = (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
    const attempt = this.#attempts.begin(
      uid,
      wanted.map(({ name }) => name),
    );
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

  /** An event for volumes that were waited for in vain, with all that is known of each. Nothing when none was. */
  reportTimedOut(pod: Pod): void {
    const message = this.#attempts.late(pod.metadata.uid);
    if (message !== undefined) this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
  }

  async #setUpPlain(
    pod: Pod,
    wanted: readonly Volume[],
    done: (volume: string) => void,
    signal: AbortSignal,
  ): Promise<readonly Problem[]> {
    const filled = this.#filled?.of(pod);
    const isElsewhere = (volume: Volume) =>
      filled?.has(volume.name) === true || (this.#claimed !== undefined && isClaimed(volume));
    const own = wanted.filter((volume) => !isElsewhere(volume));
    const problems = await mapConcurrently(own, async (volume) => {
      const problem = await this.#tryOne(pod, volume, signal);
      if (problem === undefined) done(volume.name);
      return problem;
    });
    return problems.filter((problem) => problem !== undefined);
  }

  /** It is tried again soon at first, then ever more rarely. */
  #unusable(uid: PodUid, problems: readonly Problem[]): KubelingError {
    const retries = problems.flatMap(({ retryAtMs }) => (retryAtMs === undefined ? [] : [retryAtMs]));
    const nowMs = this.#times?.clock.monotonicMs();
    if (nowMs !== undefined) retries.push(nowMs + (this.#retries?.fail(uid, { nowMs }) ?? 0));
    const details = retries.length === 0 ? {} : { retryAtMs: Math.min(...retries) };
    const message = [...new Set(problems.map((problem) => problem.message))].join('; ');
    return new KubelingError('VOLUME_UNUSABLE', message, { details });
  }

  async #tryOne(pod: Pod, volume: Volume, signal: AbortSignal): Promise<Problem | undefined> {
    const { name } = volume;
    try {
      const work = () => this.#setUpOne(pod, volume, signal);
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

  /** Brings what is filled from here up to date under a pod that runs; what is there stays if that cannot be done. */
  async refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#fill(pod, signal);
    await this.#claimed?.refresh(pod, signal);
    this.#mounted.set(pod.metadata.uid, this.#usedBy(pod));
    const used = usedVolumes(pod);
    for (const volume of pod.spec.volumes ?? [])
      if (isOfDriver(volume) && used.has(volume.name)) this.#csi?.maintainInline(pod, volume);
  }

  /** Of each volume that a container uses and that is known here. */
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

  /** The plugins of all that pods have now, as many times as there are volumes. */
  mountedPlugins(): readonly string[] {
    return [...this.#mounted.values()].flat().map(({ plugin }) => plugin.name);
  }

  /** Where claims of the pod are mounted; a path of the host is none that says how much it may hold. */
  claimsOf(pod: Pod): readonly MountedClaim[] {
    const isMounted = this.#mounted.has(pod.metadata.uid) && this.#claimed !== undefined;
    return isMounted ? mountedClaims(pod, this.#directories, this.#claimed.of(pod)) : [];
  }

  /** The volumes of the pod that can say how much they hold: not paths of the host, nor images. */
  placesOf(pod: Pod): readonly MeasuredDirectory[] {
    return this.#mounted.has(pod.metadata.uid) ? volumePaths(pod, this.#directories, this.of(pod)) : [];
  }

  /** They are made beside each other: all of a pod take as long as the slowest. */
  async #setUpClaimed(
    pod: Pod,
    done: (volume: string) => void,
    signal: AbortSignal,
  ): Promise<readonly ClaimProblem[]> {
    if (this.#claimed === undefined) return [];
    const { clock, observe } = this.#times ?? {};
    const begin = clock?.monotonicMs() ?? 0;
    const problems = await this.#claimed.make(pod, signal, done);
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

  /** Answers what keeps containers from starting: content that is whole, though old, does not. */
  async #fill(
    pod: Pod,
    signal: AbortSignal,
    done: (volume: string) => void = () => {},
  ): Promise<readonly Problem[]> {
    const problems = (await this.#filled?.make(pod, signal, done)) ?? [];
    const isOld = problems.some(({ content }) => content === 'earlier');
    this.#renewals?.[isOld ? 'failed' : 'forget'](pod.metadata.uid);
    return problems.flatMap(({ volume, message, content }) => {
      const told = this.#reportProblem(pod, volume, message);
      return content === 'none' ? [{ volume, message: told }] : [];
    });
  }

  /** What cannot be mounted is told volume by volume, what is not even known to be mountable all at once. */
  #reportClaimProblems(
    pod: Pod,
    problems: readonly ClaimProblem[],
    others: readonly Problem[],
  ): readonly Problem[] {
    const unmounted = problems.filter((problem) => problem.kind === 'unmounted');
    for (const { reason, message } of unmounted)
      this.#journal.event(pod, { type: 'Warning', reason, message });
    const unprocessed = problems.filter(({ kind }) => kind === 'unprocessed');
    if (unprocessed.length === 0) return unmounted;
    const failed = namesOf([...others, ...problems]);
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

  /** Where several things are done to mount it, what failed says which. */
  #reportFailure(pod: Pod, volume: string, error: unknown): string {
    if (!(error instanceof KubelingError) || error.details['stage'] === undefined)
      return this.#reportProblem(pod, volume, describeError(error));
    const { message } = error;
    this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
    return message;
  }

  /**
   * To be called once nothing of the pod runs, and again until it resolves; what is on the host's own paths stays. What is
   * in the way is an event, once for as long as it is the same.
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
      // Whoever waits no longer is told why, whoever was told to end is not.
      if (!isKind(error, 'DeadlineExceeded')) signal.throwIfAborted();
      const message = `Volumes of the pod cannot be removed: ${await this.#stillMounted(uid)}${describeError(error)}`;
      if (this.#cleanupProblems.isNew(uid, message))
        this.#journal.event(pod, { type: 'Warning', reason: 'FailedVolumeRemoval', message });
      throw error;
    }
  }

  async #removeAll({ metadata: { uid }, spec }: Pod, signal: AbortSignal): Promise<void> {
    await this.#directories.unbindParts(uid, signal);
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

  /** Answers why the volume cannot be had. */
  async #setUpOne(pod: Pod, volume: Volume, signal: AbortSignal): Promise<string | undefined> {
    const { name, hostPath, emptyDir, image, gitRepo, nfs } = volume;
    // Its image is seen to when a container that mounts it starts.
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
      const asked = { name, server, path, readOnly, mountOptions: [] };
      if (usedVolumes(pod).has(name)) await this.#nfs.setUp(pod, asked, signal);
      return undefined;
    }
    if (emptyDir === undefined)
      return `volumes of the kind ${kindOf(volume)} are not supported by this node yet`;
    const { medium = '' } = emptyDir;
    if (medium !== '' && this.#inMemory !== undefined) {
      await this.#inMemory.make(pod, volume, signal);
      return undefined;
    }
    if (medium !== '')
      return `empty directories on the medium "${medium}" are not supported by this node yet`;
    await this.#onDisk.make(pod, volume, signal);
    return undefined;
  }

  #inline(pod: Pod, volume: Volume): PathVolume | undefined {
    const found = this.#csi?.inline(pod, volume);
    if (found === undefined) return undefined;
    const { hostPath, specName, readOnly, plugin } = found;
    return { kind: 'path', hostPath, specName, readOnly, relabel: !readOnly, plugin };
  }

  #emptyDir(pod: Pod, name: string): string {
    return posix.join(this.#directories.emptyDirsOf(pod.metadata.uid), name);
  }
}
