import type { Clock, Logger } from '../lib/index.ts';
import { isStaticPod, type Pod, type PodJournal, type PodUid, type RuntimePod } from '../pods/index.ts';
import type { KnownWorker, UpdatePodOptions } from '../workers/index.ts';
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
    syncKnownPods(desired: Iterable<Pod>): ReadonlyMap<PodUid, KnownWorker>;
    updatePod(options: UpdatePodOptions): void;
    /** All the workers know now. */
    uids(): ReadonlySet<PodUid>;
    knows(uid: PodUid): boolean;
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
  /** Whether it is not clear yet that the pod may run: it has no worker then, and must not get one. */
  readonly isAdmissionPending: (uid: PodUid) => boolean;
  /** What restored kubelets have noted. */
  readonly restored: {
    /** Whether all who could want the pod have spoken: nothing of another is touched. */
    areSourcesReadyFor(uid: PodUid): boolean;
    secondsLeft(uid: PodUid): number | undefined;
  };
  readonly probes: { retain(mayRun: (uid: PodUid) => boolean): void };
  readonly checkpoints: { retain(isKept: (uid: PodUid) => boolean): void };
  readonly users: { retain(isKept: (uid: PodUid) => boolean): void };
  /** The resources of pods. */
  readonly allocation: { retain(isKept: (uid: PodUid) => boolean): void };
  /** Nothing of the pod is left: whoever remembers it may forget it. */
  readonly forgetPod: (uid: PodUid) => void;
  readonly collectBackoffs: () => void;
  /** There may be containers and logs of pods that nobody knows any more. */
  readonly collectGarbage: () => void;
  readonly observe: (counts: CleanupCounts) => void;
}

/** For metrics. */
export interface CleanupCounts {
  readonly desired: readonly Pod[];
  readonly active: readonly Pod[];
  readonly mirrors: readonly Pod[];
  /** Those just begun and just told to end among them. */
  readonly workers: ReadonlyMap<PodUid, KnownWorker>;
  readonly restarted: readonly Pod[];
  readonly orphanedRuntimePods: number;
}

const orphanGraceSeconds = 1;
/** What was seen longer ago than this, as the loop was held up, is not acted on. */
const freshMs = 10_000;

/**
 * Compares what is wanted with what is there, and ends or begins what fell between. The order is load-bearing. Decides
 * within one turn of the loop by what was gathered before it; what takes time is done beside the loop, and asks again
 * whether the pod is wanted before it takes anything away.
 */
export class PodCleanups implements AsyncDisposable {
  readonly #deps: CleanupDeps;
  /** undefined before the first round: what restored kubelets have left is not known. */
  #remembered: ReadonlySet<PodUid> | undefined;
  #removingCgroups: Promise<void> | undefined;

  constructor(deps: CleanupDeps) {
    this.#deps = deps;
  }

  /** Answers `settled` when there was nothing to do and, unless something happens, will be nothing to do. */
  run(snapshot: CleanupSnapshot, signal: AbortSignal): 'settled' | 'unsettled' {
    const { pods, workers, statuses } = this.#deps;
    // Read after the cgroups were: a pod that came meanwhile is among them and keeps the cgroup it made.
    const desired = pods.getPods();
    const worked = workers.uids();
    const known = new Map(workers.syncKnownPods(desired));
    // Nothing may be called gone on the word of a runtime that does not answer: a failure ends the round here.
    const running = this.#runningOf(snapshot);
    if (running === undefined) return 'unsettled';
    this.#deps.probes.retain((uid) => workers.queries.couldHaveRunningContainers(uid));
    statuses.removeOrphanedStatuses(new Set(desired.map((pod) => pod.metadata.uid)));
    const alive = new Set(running.map(({ uid }) => uid));
    const orphanDirectories = this.#removeDirectories(snapshot, alive, signal);
    const active = desired.filter((pod) => this.#deps.isActive(pod));
    const restarted = this.#beginMissing(desired, known);
    // The worker of a pod knows better than an older list whether something of the pod runs.
    const unseen = running.filter(({ uid }) => !snapshot.worked.has(uid) && !worked.has(uid));
    const orphaned = this.#endUnknown(unseen);
    for (const uid of orphaned) known.set(uid, orphanWorker);
    this.#forgetGone(new Set([...known.keys(), ...desired.map((pod) => pod.metadata.uid)]));
    const mirrors = pods.getPodsAndMirrorPods().mirrorPods;
    const orphanedRuntimePods = orphaned.length;
    this.#deps.observe({ desired, active, mirrors, workers: known, restarted, orphanedRuntimePods });
    const orphanCgroups = this.#removeCgroups(snapshot, alive, signal);
    this.#deps.collectBackoffs();
    const begunOrEnded = orphanDirectories + orphanCgroups + restarted.length + orphaned.length;
    return begunOrEnded === 0 && this.#areSettled(known) ? 'settled' : 'unsettled';
  }

  /** Everything that was begun has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([this.#removingCgroups, this.#deps.directories.settled()]);
  }

  #runningOf({ running, atMs }: CleanupSnapshot): readonly RuntimePod[] | undefined {
    return this.#deps.clock.monotonicMs() - atMs > freshMs ? undefined : running;
  }

  /** A worker that brings its pod to an end, or waits to be forgotten, needs another round. */
  #areSettled(known: ReadonlyMap<PodUid, KnownWorker>): boolean {
    const { queries } = this.#deps.workers;
    return [...known].every(
      ([uid, { state, orphan }]) => !orphan && (state === 'sync' || queries.shouldPodBeFinished(uid)),
    );
  }

  /** Answers how many there are. */
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

  /** One round at a time. Each cgroup is looked at again before it is removed. Answers how many there are. */
  #removeCgroups({ withCgroup }: CleanupSnapshot, alive: ReadonlySet<PodUid>, signal: AbortSignal): number {
    const { queries } = this.#deps.workers;
    const mayRun = (uid: PodUid) =>
      !withCgroup.has(uid) || alive.has(uid) || queries.couldHaveRunningContainers(uid);
    // Reading all cgroups is a good part of what an idle node does: again only when there is something to remove.
    const orphans = [...withCgroup].filter((uid) => !mayRun(uid)).length;
    if (this.#removingCgroups !== undefined || orphans === 0) return orphans;
    this.#removingCgroups = this.#deps.cgroups
      .removeOrphans({ mayRun, hasVolumes: () => false }, signal)
      .then(
        () => {},
        (error) => {
          if (!signal.aborted) this.#deps.logger.error('Cannot remove cgroups of pods that are gone', error);
        },
      )
      .finally(() => {
        this.#removingCgroups = undefined;
      });
    return orphans;
  }

  /** Whether it is sure that nobody wants the pod. */
  #isOrphan(uid: PodUid): boolean {
    return !this.#isKnown(uid) && this.#deps.restored.areSourcesReadyFor(uid);
  }

  #isKnown(uid: PodUid): boolean {
    return this.#deps.workers.knows(uid) || this.#deps.pods.getPodByUid(uid) !== undefined;
  }

  /** Wanted, active, and without a worker: it finished and is to begin anew, or a worker got lost. */
  #beginMissing(desired: readonly Pod[], known: Map<PodUid, KnownWorker>): readonly Pod[] {
    const idle = desired.filter(
      ({ metadata: { uid } }) => !known.has(uid) && !this.#deps.isAdmissionPending(uid),
    );
    // How an restored pod of this UID ended says nothing about the one that is wanted now.
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

  #endUnknown(running: readonly RuntimePod[]): readonly PodUid[] {
    const { workers, restored } = this.#deps;
    const unknown = running.filter(({ uid }) => this.#isOrphan(uid));
    for (const runningPod of unknown) {
      const graceOverrideSeconds = restored.secondsLeft(runningPod.uid) ?? orphanGraceSeconds;
      workers.updatePod({ updateType: 'kill', runningPod, kill: { graceOverrideSeconds } });
    }
    return unknown.map(({ uid }) => uid);
  }

  /** Those of the last round that are not among these pods have left nothing but what the garbage collection finds. */
  #forgetGone(now: ReadonlySet<PodUid>): void {
    const gone = [...(this.#remembered ?? [])].filter((uid) => !now.has(uid));
    for (const uid of gone) {
      this.#deps.journal.step(uid, { stage: 'removed', outcome: 'done', message: 'nothing of it is left' });
      this.#deps.forgetPod(uid);
    }
    if (gone.length > 0 || this.#remembered === undefined) this.#deps.collectGarbage();
    this.#remembered = now;
  }
}

/** A pod of the runtime that was just told to end. */
const orphanWorker: KnownWorker = { state: 'terminating', orphan: true, hasConfig: false, isStatic: false };
