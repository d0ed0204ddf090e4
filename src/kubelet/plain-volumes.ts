import { posix } from 'node:path';
import type { Volume } from '../kinds/index.ts';
import { describeError, KubelingError } from '../lib/index.ts';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';
import {
  type ClaimProblem,
  type ClaimVolumes,
  isClaimed,
  type MemoryEmptyDirs,
  type PayloadVolumes,
  prepareHostPath,
} from '../volumes/index.ts';
import type { PodDirectories } from './pod-files.ts';
import { TroubleBoard } from './trouble-board.ts';

type PathVolume = {
  readonly kind: 'path';
  readonly hostPath: string;
  readonly readOnly?: boolean;
  readonly relabel?: boolean;
  readonly specName?: string;
};

const emptyDirMode = 0o777;
const setGroupBit = 0o2000;
/** Whoever names the repository has commands of it run on the host; the gate is locked. */
const noGitRepo =
  'git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`';

/** What keeps containers from starting. */
interface Problem {
  readonly volume: string;
  /** As it was told. */
  readonly message: string;
  readonly retryAtMs?: number | undefined;
}

/** Volumes that are filled from here, such as config maps. */
export type FilledVolumes = Pick<PayloadVolumes, 'of' | 'make' | 'remove'>;

/** Empty directories that lie in memory. */
export type DirectoriesInMemory = Pick<MemoryEmptyDirs, 'make' | 'remove'>;

/** Volumes that pods have by claims. */
export type ClaimedVolumes = Pick<ClaimVolumes, 'of' | 'groupsOf' | 'make' | 'refresh' | 'remove'>;

/** What kinds of volumes besides paths of the host and empty directories on the disk of the pods; none that is left out. */
export interface OtherVolumes {
  readonly filled?: FilledVolumes | undefined;
  readonly inMemory?: DirectoriesInMemory | undefined;
  readonly claimed?: ClaimedVolumes | undefined;
}

/** The volumes of pods: paths of the host, empty directories on the disk of the pods, and others. */
export class PlainVolumes {
  readonly #directories: PodDirectories;
  readonly #files: RuntimeFiles;
  readonly #journal: Pick<PodJournal, 'event'>;
  readonly #filled: FilledVolumes | undefined;
  readonly #inMemory: DirectoriesInMemory | undefined;
  readonly #claimed: ClaimedVolumes | undefined;
  /** Why volumes of pods that have ended stay. */
  readonly #kept = new TroubleBoard();

  constructor(
    directories: PodDirectories,
    files: RuntimeFiles,
    journal: Pick<PodJournal, 'event'>,
    { filled, inMemory, claimed }: OtherVolumes = {},
  ) {
    this.#directories = directories;
    this.#files = files;
    this.#journal = journal;
    this.#filled = filled;
    this.#inMemory = inMemory;
    this.#claimed = claimed;
  }

  /** Where each is to be found; a volume of another kind is missing from the answer. */
  of(pod: Pod): ReadonlyMap<string, PathVolume> {
    const found = new Map<string, PathVolume>([
      ...(this.#filled?.of(pod) ?? []),
      ...(this.#claimed?.of(pod) ?? []),
    ]);
    for (const { name, hostPath, emptyDir } of pod.spec.volumes ?? []) {
      if (hostPath !== undefined) found.set(name, { kind: 'path', hostPath: hostPath.path });
      else if (emptyDir !== undefined) found.set(name, { kind: 'path', hostPath: this.#emptyDir(pod, name) });
    }
    return found;
  }

  /** The groups that users of the pod's volumes must be in, whatever the pod says. */
  groupsOf(uid: PodUid): readonly number[] {
    return this.#claimed?.groupsOf(uid) ?? [];
  }

  /** Rejects with VOLUME_UNUSABLE, after an event for each volume that cannot be had: without all the pod must not start. */
  async make(pod: Pod, signal: AbortSignal): Promise<void> {
    const problems: Problem[] = [];
    const filled = this.#filled?.of(pod);
    for (const volume of pod.spec.volumes ?? []) {
      const isElsewhere = filled?.has(volume.name) === true || (this.#claimed && isClaimed(volume));
      if (isElsewhere === true) continue;
      const problem = await this.#makeOne(pod, volume, signal).catch(describeError);
      if (problem === undefined) continue;
      signal.throwIfAborted();
      problems.push({ volume: volume.name, message: this.#tell(pod, volume.name, problem) });
    }
    problems.push(...(await this.#fill(pod, signal)));
    problems.push(...this.#tellClaims(pod, (await this.#claimed?.make(pod, signal)) ?? [], problems));
    if (problems.length === 0) return;
    const retries = problems.flatMap(({ retryAtMs }) => (retryAtMs === undefined ? [] : [retryAtMs]));
    const details = retries.length === 0 ? {} : { retryAtMs: Math.min(...retries) };
    throw new KubelingError('VOLUME_UNUSABLE', problems.map(({ message }) => message).join('; '), {
      details,
    });
  }

  /** Brings what is filled from here up to date under a pod that runs; what is there stays if that cannot be done. */
  async refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#fill(pod, signal);
    await this.#claimed?.refresh(pod, signal);
  }

  /** Answers what keeps containers from starting: content that is whole, though old, does not. */
  async #fill(pod: Pod, signal: AbortSignal): Promise<readonly Problem[]> {
    const problems = (await this.#filled?.make(pod, signal)) ?? [];
    return problems.flatMap(({ volume, message, content }) => {
      const told = this.#tell(pod, volume, message);
      return content === 'none' ? [{ volume, message: told }] : [];
    });
  }

  /** What cannot be mounted is told volume by volume, what is not even known to be mountable all at once. */
  #tellClaims(pod: Pod, problems: readonly ClaimProblem[], others: readonly Problem[]): readonly Problem[] {
    const unmounted = problems.filter((problem) => problem.kind === 'unmounted');
    for (const { reason, message } of unmounted)
      this.#journal.event(pod, { type: 'Warning', reason, message });
    const unprocessed = problems.filter(({ kind }) => kind === 'unprocessed');
    if (unprocessed.length === 0) return unmounted;
    const failed = namesOf([...others, ...problems]);
    const because = unprocessed.map(({ message }) => message).join('; ');
    const message = `Unable to attach or mount volumes: unmounted volumes=[${failed}], unattached volumes=[], failed to process volumes=[${namesOf(unprocessed)}]: ${because}`;
    this.#journal.event(pod, { type: 'Warning', reason: 'FailedMount', message });
    return [...unmounted, { volume: failed, message }];
  }

  #tell(pod: Pod, volume: string, problem: string): string {
    const message = `MountVolume.SetUp failed for volume "${volume}" : ${problem}`;
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
      await this.#removeAll(uid, signal);
      this.#kept.end(uid);
    } catch (error) {
      signal.throwIfAborted();
      const message = `Volumes of the pod cannot be removed: ${describeError(error)}`;
      if (this.#kept.begin(uid, message))
        this.#journal.event(pod, { type: 'Warning', reason: 'FailedVolumeRemoval', message });
      throw error;
    }
  }

  async #removeAll(uid: PodUid, signal: AbortSignal): Promise<void> {
    await this.#directories.unbindParts(uid, signal);
    await this.#filled?.remove(uid, signal);
    await this.#inMemory?.remove(uid, signal);
    await this.#claimed?.remove(uid, signal);
    await this.#directories.removeEmptyDirs(uid);
  }

  /** Answers why the volume cannot be had. */
  async #makeOne(pod: Pod, volume: Volume, signal: AbortSignal): Promise<string | undefined> {
    const { name, hostPath, emptyDir, image, gitRepo } = volume;
    // Its image is seen to when a container that mounts it starts.
    if (image !== undefined) return undefined;
    if (hostPath !== undefined) {
      await prepareHostPath(this.#files, hostPath);
      return undefined;
    }
    if (gitRepo !== undefined) return noGitRepo;
    if (emptyDir === undefined)
      return `volumes of the kind ${kindOf(volume)} are not supported by this node yet`;
    const { medium = '' } = emptyDir;
    if (medium !== '' && this.#inMemory !== undefined) {
      await this.#inMemory.make(pod, volume, signal);
      return undefined;
    }
    if (medium !== '')
      return `empty directories on the medium "${medium}" are not supported by this node yet`;
    await this.#files.makeSharedDirectory(this.#emptyDir(pod, name), sharedBy(pod));
    return undefined;
  }

  #emptyDir(pod: Pod, name: string): string {
    return posix.join(this.#directories.emptyDirsOf(pod.metadata.uid), name);
  }
}

function namesOf(problems: readonly { readonly volume: string }[]): string {
  return problems
    .map(({ volume }) => volume)
    .toSorted()
    .join(' ');
}

/** Everybody in the pod may write there; with a group of its volumes, what is written belongs to that group. */
function sharedBy({ spec }: Pod): { readonly mode: number; readonly group?: number } {
  const group = spec.securityContext?.fsGroup;
  return group === undefined ? { mode: emptyDirMode } : { mode: emptyDirMode | setGroupBit, group };
}

/** By the field that is set besides the name. */
function kindOf(volume: Volume): string {
  const set = Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined);
  return set?.[0] ?? 'unknown';
}
