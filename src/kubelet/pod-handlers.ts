import type { PodStanding } from '../checkpoints/index.ts';
import type { PodStatus } from '../kinds/index.ts';
import type { Clock, Logger } from '../lib/index.ts';
import {
  fullNameOf,
  isMirrorPod,
  isStaticPod,
  isTerminalPhase,
  type Pod,
  type PodFullName,
  type PodJournal,
  type PodUid,
} from '../pods/index.ts';
import type {
  Admission,
  AllocatedPods,
  AllocationManager,
  PendingAdmissions,
  PodAdmission,
} from '../resources/index.ts';
import { rejectedPodStatus } from '../status/index.ts';
import type { UpdatePodOptions } from '../workers/index.ts';
import type { CleanupSnapshot } from './cleanup-snapshots.ts';
import type { ConfigUpdate, LifecycleHint, SyncHandler } from './sync-loop.ts';

/** The part of the pod manager that the handlers use. */
export interface DesiredPods {
  addPod(pod: Pod): void;
  updatePod(pod: Pod): void;
  removePod(pod: Pod): void;
  getPods(): readonly Pod[];
  getPodByUid(uid: PodUid): Pod | undefined;
  /** Returns a static pod and its mirror pod; `pod` may be either of the two. */
  getPodAndMirrorPod(pod: Pod): { readonly pod: Pod | undefined; readonly mirrorPod: Pod | undefined };
}

export interface HandlerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: PodJournal;
  readonly pods: DesiredPods;
  readonly workers: {
    updatePod(options: UpdatePodOptions): void;
    rejectPod(pod: Pod): void;
    resumeTermination(pod: Pod, graceSeconds: number): void;
    has(uid: PodUid): boolean;
    readonly queries: {
      isPodTerminationRequested(uid: PodUid): boolean;
      isPodKnownTerminated(uid: PodUid): boolean;
    };
  };
  readonly sources: {
    markHandled(source: ConfigUpdate['source']): void;
    isReady(source: ConfigUpdate['source']): boolean;
    someReady(): boolean;
  };
  /** The checkpoints that previous kubelet processes have written. */
  readonly restored: {
    /** Returns the pod with the status from its checkpoint. */
    restore(pod: Pod): Pod;
    recordRejection(pod: Pod, status: PodStatus): void;
    recordRemoval(pod: Pod): void;
    standing(pod: Pod): PodStanding;
    secondsLeft(uid: PodUid): number | undefined;
  };
  readonly statuses: {
    getPodStatus(uid: PodUid): PodStatus | undefined;
    setPodStatus(pod: Pod, status: PodStatus): PodStatus;
    setContainerEnded(uid: PodUid, containerId: string): void;
    expectReturn(uid: PodUid): void;
  };
  readonly nodeIps: () => readonly string[];
  readonly queue: { takeDue(): readonly PodUid[] };
  /** Counts a rejected pod in the metrics. */
  readonly rejected: (reason: string) => void;
  readonly admission: Pick<PodAdmission, 'admit'>;
  readonly pending: Pick<PendingAdmissions, 'has' | 'cancel'>;
  /** The allocated resources of pods, as admitted. */
  readonly allocation: Pick<AllocationManager, 'podAdmitted' | 'podsAdded' | 'podUpdated' | 'podRemoved'>;
  readonly allocated: Pick<AllocatedPods, 'withAllocation'>;
  /** Removes dead containers beyond the number kept for their logs. */
  readonly deleteSurplus: (uid: PodUid, containerId: string) => void;
  readonly cleanUp: (found: CleanupSnapshot, signal: AbortSignal) => void;
  /** Called when a static pod or mirror pod of this name was added, changed or removed. */
  readonly staticOrMirrorChanged: (name: PodFullName) => void;
  /** Called for every change that may require housekeeping. */
  readonly changed: () => void;
  /** Whether the pod has exceeded its activeDeadlineSeconds. */
  readonly isPastDeadline: (pod: Pod) => boolean;
}

/**
 * Handles the inputs of the sync loop by updating the pod workers. No handler waits for the work on
 * a pod.
 */
export class PodHandlers implements SyncHandler {
  readonly #deps: HandlerDeps;

  constructor(deps: HandlerDeps) {
    this.#deps = deps;
  }

  async handleConfig({ op, pods, source }: ConfigUpdate): Promise<void> {
    if (this.#needsHousekeeping(op, pods)) this.#deps.changed();
    if (op === 'ADD') this.#addPods(pods);
    else if (op === 'REMOVE') this.#removePods(pods, source);
    else if (op === 'RECONCILE') this.#reconcile(pods);
    else this.#updatePods(pods);
    this.#deps.sources.markHandled(source);
    if (op !== 'RECONCILE') this.#deps.allocation.podsAdded();
    for (const pod of pods)
      if (isStaticPod(pod) || isMirrorPod(pod)) this.#deps.staticOrMirrorChanged(fullNameOf(pod));
  }

  async handleLifecycle({ type, uid, containerId, sync }: LifecycleHint): Promise<void> {
    if (type !== 'ContainerStarted') this.#deps.changed();
    const died = type === 'ContainerDied' ? containerId : undefined;
    if (died !== undefined) this.#deps.statuses.setContainerEnded(uid as PodUid, died);
    if (type !== 'ContainerRemoved' && sync === undefined) await this.handlePodSync(uid);
    if (died !== undefined) this.#deps.deleteSurplus(uid as PodUid, died);
  }

  /**
   * Whether a config update may cause work for housekeeping. An added pod or a new status causes
   * none, unless the added pod has the UID of a pod with a worker: the added pod may have to wait
   * until that pod has terminated.
   */
  #needsHousekeeping(op: ConfigUpdate['op'], pods: readonly Pod[]): boolean {
    if (op === 'ADD') return pods.some((pod) => this.#deps.workers.has(pod.metadata.uid));
    return op !== 'RECONCILE';
  }

  async handleDue(): Promise<void> {
    const due = new Set(this.#deps.queue.takeDue());
    for (const pod of this.#deps.pods.getPods()) {
      if (due.has(pod.metadata.uid) || this.#deps.isPastDeadline(pod)) this.#sync(pod);
    }
  }

  async handlePodSync(uid: string): Promise<void> {
    const pod = this.#deps.pods.getPodByUid(uid as PodUid);
    if (pod !== undefined) this.#sync(pod);
  }

  async handlePodCleanups(found: CleanupSnapshot, signal: AbortSignal): Promise<void> {
    if (this.#deps.sources.someReady()) this.#deps.cleanUp(found, signal);
  }

  /** Restored pods are admitted first, then new pods in order of creation. */
  #addPods(pods: readonly Pod[]): void {
    const oldestFirst = pods.toSorted((a, b) => createdAt(a) - createdAt(b));
    const { restored = [], new: others = [] } = Object.groupBy(oldestFirst, (pod) =>
      this.#deps.restored.standing(pod),
    );
    for (const added of [...restored, ...others]) {
      const pod = isMirrorPod(added) ? added : this.#deps.restored.restore(added);
      this.#deps.pods.addPod(pod);
      if (isStaticPod(pod)) this.#deps.statuses.expectReturn(pod.metadata.uid);
      if (isMirrorPod(pod)) this.#touchStatic(pod);
      else this.#add(pod);
    }
  }

  #add(pod: Pod): void {
    const { uid } = pod.metadata;
    const { workers, journal } = this.#deps;
    journal.step(uid, { stage: 'seen', outcome: 'done', message: `from the source ${sourceOf(pod)}` });
    const isOver = workers.queries.isPodTerminationRequested(uid) || isTerminalPhase(pod.status.phase);
    if (isOver) this.#update(pod, 'create');
    else {
      const admittedPod = this.#deps.allocated.withAllocation(pod);
      this.#deps.admission.admit(admittedPod, (admission) => this.#admissionDecided(admittedPod, admission));
    }
  }

  /** The pod may have been edited or removed during its admission, or may be terminating. */
  #admissionDecided(admittedPod: Pod, admission: Admission): void {
    const { pods, workers, journal, restored, allocation } = this.#deps;
    const pod = pods.getPodByUid(admittedPod.metadata.uid);
    if (pod === undefined || workers.queries.isPodTerminationRequested(pod.metadata.uid)) return;
    if (!admission.admit) {
      this.#reject(pod, admission.reason, admission.message);
      return;
    }
    const { uid } = pod.metadata;
    journal.step(uid, { stage: 'admitted', outcome: 'done', message: 'admitted by the node' });
    allocation.podAdmitted(pod, admittedPod);
    const secondsLeft = restored.secondsLeft(uid);
    if (secondsLeft !== undefined) workers.resumeTermination(pod, secondsLeft);
    else this.#update(pod, 'create');
  }

  #reject(pod: Pod, reason: string, message: string): void {
    const { journal, statuses, workers, restored } = this.#deps;
    journal.event(pod, { type: 'Warning', reason, message });
    journal.step(pod.metadata.uid, { stage: 'admitted', outcome: 'failed', message });
    this.#deps.rejected(reason);
    const why = { reason, message: `Pod was rejected: ${message}` };
    const status = statuses.setPodStatus(pod, rejectedPodStatus(pod, why, this.#deps.nodeIps()));
    restored.recordRejection(pod, status);
    workers.rejectPod(pod);
  }

  #updatePods(updated: readonly Pod[]): void {
    const { pods, allocation } = this.#deps;
    for (const pod of updated) {
      const before = pods.getPodByUid(pod.metadata.uid);
      pods.updatePod(pod);
      if (!isMirrorPod(pod)) allocation.podUpdated(before, pod);
      if (isMirrorPod(pod)) this.#touchStatic(pod);
      else this.#update(pod, 'update');
    }
  }

  #removePods(removed: readonly Pod[], source: ConfigUpdate['source']): void {
    for (const pod of removed) {
      this.#deps.pods.removePod(pod);
      this.#deps.pending.cancel(pod.metadata.uid);
      this.#deps.allocation.podRemoved(pod.metadata.uid);
      if (!isMirrorPod(pod)) this.#deps.restored.recordRemoval(pod);
      if (isMirrorPod(pod)) this.#touchStatic(pod);
      // Until the source of the pod is ready, a missing pod may still be desired; housekeeping
      // removes it later.
      else if (this.#deps.sources.isReady(source)) {
        this.#deps.workers.updatePod({ updateType: 'kill', pod, startStamp: this.#deps.clock.stamp() });
      }
    }
  }

  /** If only the status differs from the cached pod, the new status is cached without a sync. */
  #reconcile(reconciled: readonly Pod[]): void {
    for (const pod of reconciled) {
      this.#deps.pods.updatePod(pod);
      if (!isMirrorPod(pod) && (pod.spec.readinessGates?.length ?? 0) > 0) this.#update(pod, 'sync');
    }
  }

  /**
   * A change of a mirror pod syncs its static pod; a mirror pod without a static pod is ignored.
   */
  #touchStatic(mirror: Pod): void {
    const { pod } = this.#deps.pods.getPodAndMirrorPod(mirror);
    if (pod !== undefined && isStaticPod(pod)) this.#update(pod, 'update');
  }

  #sync(pod: Pod): void {
    if (!isMirrorPod(pod)) this.#update(pod, 'sync');
  }

  /** A pod whose admission is pending is not synced, unless it is deleted. */
  #update(pod: Pod, updateType: 'create' | 'update' | 'sync'): void {
    const { pending } = this.#deps;
    if (pending.has(pod.metadata.uid)) {
      if (pod.metadata.deletionTimestamp === undefined) return;
      pending.cancel(pod.metadata.uid);
    }
    const { mirrorPod } = this.#deps.pods.getPodAndMirrorPod(pod);
    this.#deps.workers.updatePod({ updateType, pod, mirrorPod, startStamp: this.#deps.clock.stamp() });
  }
}

function createdAt(pod: Pod): number {
  const { creationTimestamp } = pod.metadata;
  return creationTimestamp === undefined ? 0 : Date.parse(creationTimestamp);
}

function sourceOf(pod: Pod): string {
  return pod.metadata.annotations?.['kubernetes.io/config.source'] ?? 'api';
}
