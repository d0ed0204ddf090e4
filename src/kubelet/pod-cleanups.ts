import type { Logger } from '../lib/index.ts';
import type { Pod, PodJournal, PodUid, RuntimePod } from '../pods/index.ts';
import type { KnownWorker, UpdatePodOptions } from '../workers/index.ts';
import type { PodDirectories } from './pod-files.ts';

export interface CleanupDeps {
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly pods: { getPods(): readonly Pod[]; getPodByUid(uid: PodUid): Pod | undefined };
  readonly workers: {
    syncKnownPods(desired: Iterable<Pod>): ReadonlyMap<PodUid, KnownWorker>;
    updatePod(options: UpdatePodOptions): void;
  };
  /** Asked of the runtime now. */
  readonly runningPods: (signal: AbortSignal) => Promise<readonly RuntimePod[]>;
  readonly statuses: {
    removeOrphanedStatuses(known: ReadonlySet<PodUid>): void;
    forget(uid: PodUid): void;
  };
  readonly cgroups: {
    list(): Promise<ReadonlyMap<PodUid, unknown>>;
    removeOrphans(
      rules: { mayRun(uid: PodUid): boolean; hasVolumes(uid: PodUid): boolean },
      signal: AbortSignal,
    ): Promise<readonly PodUid[]>;
  };
  readonly directories: PodDirectories;
  readonly isActive: (pod: Pod) => boolean;
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
  readonly workers: ReadonlyMap<PodUid, KnownWorker>;
  readonly restarted: number;
  readonly orphanedRuntimePods: number;
}

const orphanGraceSeconds = 1;

/** Compares what is wanted with what is there, and ends or begins what fell between. The order is load-bearing. */
export class PodCleanups {
  readonly #deps: CleanupDeps;
  /** undefined before the first round: what earlier kubelets have left is not known. */
  #remembered: ReadonlySet<PodUid> | undefined;

  constructor(deps: CleanupDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { pods, workers, cgroups, statuses } = this.#deps;
    // Before the desired pods are read: a pod that arrives later must keep the cgroup it makes.
    const withCgroup = await cgroups.list();
    const desired = pods.getPods();
    const known = workers.syncKnownPods(desired);
    // Nothing may be called gone on the word of a runtime that does not answer: a failure ends the round here.
    const running = await this.#deps.runningPods(signal);
    const mayRun = (uid: PodUid) => isPossiblyRunning(known.get(uid));
    statuses.removeOrphanedStatuses(new Set(desired.map((pod) => pod.metadata.uid)));
    await this.#removeDirectories(known, running, signal);
    const restarted = this.#beginMissing(desired, known);
    const orphaned = this.#endUnknown(running, known);
    this.#forgetGone(new Set([...known.keys(), ...orphaned, ...desired.map((pod) => pod.metadata.uid)]));
    this.#deps.observe({ desired, workers: known, restarted, orphanedRuntimePods: orphaned.length });
    // Reading all cgroups is a good part of what an idle node does: again only when there is something to remove.
    if ([...withCgroup.keys()].some((uid) => !mayRun(uid))) {
      const rules = { mayRun: (uid: PodUid) => mayRun(uid) || !withCgroup.has(uid), hasVolumes: () => false };
      await cgroups.removeOrphans(rules, signal);
    }
    this.#deps.collectBackoffs();
  }

  async #removeDirectories(
    known: ReadonlyMap<PodUid, KnownWorker>,
    running: readonly RuntimePod[],
    signal: AbortSignal,
  ): Promise<void> {
    const { directories, pods, logger } = this.#deps;
    const alive = new Set(running.map((pod) => pod.uid));
    for (const uid of await directories.list()) {
      signal.throwIfAborted();
      if (known.has(uid) || alive.has(uid) || pods.getPodByUid(uid) !== undefined) continue;
      await directories
        .remove(uid)
        .catch((error) => logger.error('Cannot remove the directory of a pod', error, { podUid: uid }));
    }
  }

  /** Wanted, active, and without a worker: it finished and is to begin anew, or a worker got lost. */
  #beginMissing(desired: readonly Pod[], known: ReadonlyMap<PodUid, KnownWorker>): number {
    const idle = desired.filter((pod) => !known.has(pod.metadata.uid));
    // How an earlier pod of this UID ended says nothing about the one that is wanted now.
    for (const pod of idle) this.#deps.statuses.forget(pod.metadata.uid);
    const missing = idle.filter((pod) => this.#deps.isActive(pod));
    for (const pod of missing) this.#deps.workers.updatePod({ updateType: 'create', pod });
    return missing.length;
  }

  #endUnknown(running: readonly RuntimePod[], known: ReadonlyMap<PodUid, KnownWorker>): readonly PodUid[] {
    const unknown = running.filter(
      ({ uid }) => !known.has(uid) && this.#deps.pods.getPodByUid(uid) === undefined,
    );
    for (const runningPod of unknown) {
      this.#deps.workers.updatePod({
        updateType: 'kill',
        runningPod,
        kill: { graceOverrideSeconds: orphanGraceSeconds },
      });
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

function isPossiblyRunning(worker: KnownWorker | undefined): boolean {
  return worker !== undefined && worker.state !== 'terminated';
}
