import type { PodCheckpoints } from '../checkpoints/index.ts';
import type { Clock, Logger } from '../lib/index.ts';
import { isStaticPod, type Pod, type PodJournal, type PodUid, type RuntimePod } from '../pods/index.ts';
import type { UpdatePodOptions, WorkerSummary } from '../workers/index.ts';
import type { CleanupSnapshot } from './cleanup-snapshots.ts';
import type { OrphanDirectories } from './orphan-directories.ts';

export interface CleanupDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly pods: {
    getPods(): readonly Pod[];
    getPodByUid(uid: PodUid): Pod | undefined;
    getPodsAndMirrorPods(): { readonly mirrorPods: readonly Pod[] };
  };
  readonly workers: {
    syncKnownPods(desired: Iterable<Pod>): ReadonlyMap<PodUid, WorkerSummary>;
    updatePod(options: UpdatePodOptions): void;
    /** All pods that have a worker now. */
    uids(): ReadonlySet<PodUid>;
    has(uid: PodUid): boolean;
    readonly queries: {
      couldHaveRunningContainers(uid: PodUid): boolean;
      shouldPodBeFinished(uid: PodUid): boolean;
    };
  };
  readonly statuses: {
    removeOrphanedStatuses(known: ReadonlySet<PodUid>): void;
    forget(uid: PodUid): void;
  };
  readonly cgroups: {
    removeOrphans(
      rules: { mayRun(uid: PodUid): boolean; hasVolumes(uid: PodUid): boolean },
      signal: AbortSignal,
    ): Promise<readonly PodUid[]>;
  };
  readonly directories: OrphanDirectories;
  readonly isActive: (pod: Pod) => boolean;
  /** Whether the admission of the pod is pending: it has no worker then and must not get one. */
  readonly isAdmissionPending: (uid: PodUid) => boolean;
  /** The checkpoints that previous kubelet processes have written. */
  readonly restored: {
    /**
     * Whether all sources that could have the pod have delivered their pods. Until then nothing of
     * the pod is removed.
     */
    areSourcesReadyFor(uid: PodUid): boolean;
    secondsLeft(uid: PodUid): number | undefined;
  };
  readonly probes: { retain(mayRun: (uid: PodUid) => boolean): void };
  readonly checkpoints: Pick<PodCheckpoints, 'retain'>;
  readonly users: { retain(isKept: (uid: PodUid) => boolean): void };
  /** The allocated resources of pods, as admitted. */
  readonly allocation: { retain(isKept: (uid: PodUid) => boolean): void };
  /** Called when nothing of the pod is left, so that caches drop the data of the pod. */
  readonly forgetPod: (uid: PodUid) => void;
  readonly collectBackoffs: () => void;
  /** Called when dead containers and logs of deleted pods may have to be removed. */
  readonly collectGarbage: () => void;
  readonly observe: (counts: CleanupCounts) => void;
}

/** The counts of one housekeeping round, for metrics. */
export interface CleanupCounts {
  readonly desired: readonly Pod[];
  readonly active: readonly Pod[];
  readonly mirrors: readonly Pod[];
  /** The workers of pods, including workers that were just started or requested to terminate. */
  readonly workers: ReadonlyMap<PodUid, WorkerSummary>;
  readonly restarted: readonly Pod[];
  readonly orphanedRuntimePods: number;
}

const orphanGraceSeconds = 1;
/**
 * The maximum age of a snapshot. An older one, which exists only if the sync loop was paused, is
 * not used.
 */
const freshMs = 10_000;

/**
 * Compares the desired pods with the existing ones, and starts missing pods and terminates orphaned
 * ones. The order of the steps matters. Decides within one iteration of the sync loop, from a
 * snapshot; slow work runs outside the loop, and checks again whether the pod is desired before it
 * removes anything.
 */
export class PodCleanups implements AsyncDisposable {
  readonly #deps: CleanupDeps;
  /**
   * The pods of the previous housekeeping round; undefined before the first round, because the pods
   * of previous kubelet processes are not known then.
   */
  #previousUids: ReadonlySet<PodUid> | undefined;
  #removingCgroups: Promise<void> | undefined;

  constructor(deps: CleanupDeps) {
    this.#deps = deps;
  }

  /**
   * Runs one round of housekeeping. Returns `settled` when there was no work and, unless something
   * changes, will be none.
   */
  run(snapshot: CleanupSnapshot, signal: AbortSignal): 'settled' | 'unsettled' {
    const { pods, workers, statuses } = this.#deps;
    // The desired pods are read after the snapshot of the cgroups, so that the cgroup of a pod
    // added since then is not removed.
    const desired = pods.getPods();
    const withWorker = workers.uids();
    const known = new Map(workers.syncKnownPods(desired));
    // No pod counts as deleted while the runtime does not respond: the round ends here.
    const running = this.#runningOf(snapshot);
    if (running === undefined) return 'unsettled';
    this.#deps.probes.retain((uid) => workers.queries.couldHaveRunningContainers(uid));
    statuses.removeOrphanedStatuses(new Set(desired.map((pod) => pod.metadata.uid)));
    const alive = new Set(running.map(({ uid }) => uid));
    const orphanDirectories = this.#removeDirectories(snapshot, alive, signal);
    const active = desired.filter((pod) => this.#deps.isActive(pod));
    const restarted = this.#startMissing(desired, known);
    // The worker of a pod has newer information than the runtime list, so the worker decides
    // whether containers of the pod run.
    const withoutWorker = running.filter(({ uid }) => !snapshot.withWorker.has(uid) && !withWorker.has(uid));
    const orphaned = this.#terminateOrphans(withoutWorker);
    for (const uid of orphaned) known.set(uid, orphanWorker);
    this.#dropDeleted(new Set([...known.keys(), ...desired.map((pod) => pod.metadata.uid)]));
    const mirrors = pods.getPodsAndMirrorPods().mirrorPods;
    const orphanedRuntimePods = orphaned.length;
    this.#deps.observe({ desired, active, mirrors, workers: known, restarted, orphanedRuntimePods });
    const orphanCgroups = this.#removeCgroups(snapshot, alive, signal);
    this.#deps.collectBackoffs();
    const changes = orphanDirectories + orphanCgroups + restarted.length + orphaned.length;
    return changes === 0 && this.#areSettled(known) ? 'settled' : 'unsettled';
  }

  /** Waits for the removals of cgroups and directories in flight. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([this.#removingCgroups, this.#deps.directories.settled()]);
  }

  #runningOf({ running, atMs }: CleanupSnapshot): readonly RuntimePod[] | undefined {
    return this.#deps.clock.monotonicMs() - atMs > freshMs ? undefined : running;
  }

  /**
   * Whether all workers are settled: no worker terminates its pod or can be dropped, so
   * housekeeping has nothing more to do for them.
   */
  #areSettled(known: ReadonlyMap<PodUid, WorkerSummary>): boolean {
    const { queries } = this.#deps.workers;
    return [...known].every(
      ([uid, { state, orphan }]) => !orphan && (state === 'sync' || queries.shouldPodBeFinished(uid)),
    );
  }

  /**
   * Starts the removal of the directories of deleted pods. Returns the number of orphaned
   * directories.
   */
  #removeDirectories(
    { directories }: CleanupSnapshot,
    alive: ReadonlySet<PodUid>,
    signal: AbortSignal,
  ): number {
    if (directories === undefined) return 1;
    const there = new Set(directories);
    const isKept = (uid: PodUid) => there.has(uid) || this.#isKnown(uid);
    this.#deps.checkpoints.retain(isKept);
    this.#deps.users.retain(isKept);
    this.#deps.allocation.retain(isKept);
    const orphans = directories.filter((uid) => this.#isOrphan(uid) && !alive.has(uid));
    this.#deps.directories.removeSoon(new Set(orphans), signal);
    return orphans.length;
  }

  /**
   * Removes the cgroups of deleted pods, one round at a time; each cgroup is checked again before
   * it is removed. Returns the number of orphaned cgroups.
   */
  #removeCgroups({ withCgroup }: CleanupSnapshot, alive: ReadonlySet<PodUid>, signal: AbortSignal): number {
    const { queries } = this.#deps.workers;
    const mayRun = (uid: PodUid) =>
      !withCgroup.has(uid) || alive.has(uid) || queries.couldHaveRunningContainers(uid);
    // Reading all cgroups is a large part of the work of an idle node, so it is done only when a
    // cgroup has to be removed.
    const orphans = [...withCgroup].filter((uid) => !mayRun(uid)).length;
    if (this.#removingCgroups !== undefined || orphans === 0) return orphans;
    this.#removingCgroups = this.#deps.cgroups
      .removeOrphans({ mayRun, hasVolumes: () => false }, signal)
      .then(
        () => {},
        (error) => {
          if (!signal.aborted) this.#deps.logger.error('Failed to remove orphaned pod cgroups', error);
        },
      )
      .finally(() => {
        this.#removingCgroups = undefined;
      });
    return orphans;
  }

  /** Whether no worker and no source has the pod, and all sources that could have it are ready. */
  #isOrphan(uid: PodUid): boolean {
    return !this.#isKnown(uid) && this.#deps.restored.areSourcesReadyFor(uid);
  }

  #isKnown(uid: PodUid): boolean {
    return this.#deps.workers.has(uid) || this.#deps.pods.getPodByUid(uid) !== undefined;
  }

  /**
   * Starts workers for desired, active pods that have none, because the previous pod with the same
   * UID has finished or the worker was lost.
   */
  #startMissing(desired: readonly Pod[], known: Map<PodUid, WorkerSummary>): readonly Pod[] {
    const idle = desired.filter(
      ({ metadata: { uid } }) => !known.has(uid) && !this.#deps.isAdmissionPending(uid),
    );
    // Discards the status of a previous pod with the same UID, which does not apply to the pod to
    // start.
    for (const pod of idle) this.#deps.statuses.forget(pod.metadata.uid);
    const missing = idle.filter((pod) => this.#deps.isActive(pod));
    for (const pod of missing) {
      this.#deps.workers.updatePod({ updateType: 'create', pod });
      known.set(pod.metadata.uid, {
        state: 'sync',
        orphan: false,
        hasConfig: true,
        isStatic: isStaticPod(pod),
      });
    }
    return missing;
  }

  #terminateOrphans(running: readonly RuntimePod[]): readonly PodUid[] {
    const { workers, restored } = this.#deps;
    const unknown = running.filter(({ uid }) => this.#isOrphan(uid));
    for (const runningPod of unknown) {
      const graceOverrideSeconds = restored.secondsLeft(runningPod.uid) ?? orphanGraceSeconds;
      workers.updatePod({ updateType: 'kill', runningPod, kill: { graceOverrideSeconds } });
    }
    return unknown.map(({ uid }) => uid);
  }

  /**
   * Pods of the previous round that are missing in the current round are deleted: cached data about
   * them is dropped.
   */
  #dropDeleted(now: ReadonlySet<PodUid>): void {
    const gone = [...(this.#previousUids ?? [])].filter((uid) => !now.has(uid));
    for (const uid of gone) {
      this.#deps.journal.step(uid, { stage: 'removed', outcome: 'done', message: 'nothing of it is left' });
      this.#deps.forgetPod(uid);
    }
    if (gone.length > 0 || this.#previousUids === undefined) this.#deps.collectGarbage();
    this.#previousUids = now;
  }
}

/**
 * The worker summary for an orphaned pod, which only the runtime knows, right after its termination
 * was requested.
 */
const orphanWorker: WorkerSummary = { state: 'terminating', orphan: true, hasConfig: false, isStatic: false };
