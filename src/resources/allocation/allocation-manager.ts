import {
  type Clock,
  compareQuantities,
  HintLatch,
  type Logger,
  parseQuantity,
  type Quantity,
} from '../../lib/index.ts';
import {
  allocationOf,
  describePod,
  type Pod,
  type PodJournal,
  type PodUid,
  podRequests,
  qosClass,
  sameAllocation,
} from '../../pods/index.ts';
import type { Rejection } from '../admission/index.ts';
import type { AllocatedPods } from './allocated-pods.ts';
import type { ResizeObserver, ResizeTrigger } from './metrics.ts';
import type { PendingReason } from './resize-conditions.ts';
import type { Infeasible } from './resize-feasibility.ts';
import { requestedResizes, resizeMessage } from './resize-feasibility.ts';

export interface AllocationManagerDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Pick<PodJournal, 'event' | 'step'>;
  readonly allocatedPods: AllocatedPods;
  /**
   * Returns the pod as its source delivers it; undefined if no source has the pod or if it is
   * terminating.
   */
  readonly findPod: (uid: PodUid) => Pod | undefined;
  /** Whether all pod sources have delivered their pods; until then the free capacity is unknown. */
  readonly areSourcesReady: () => boolean;
  readonly infeasibility: (pod: Pod, allocated: Pod) => Infeasible | undefined;
  /** Returns why the pod with the resources of its spec does not fit on the node now. */
  readonly checkAdmission: (pod: Pod) => Rejection | undefined;
  /** Syncs the pod after a change of its resize state. */
  readonly syncPod: (pod: Pod) => void;
  readonly observer?: ResizeObserver | undefined;
}

/** The interval of resize retries until all pod sources are ready; then `retryMs` applies. */
const firstRetryMs = 30_000;
const retryMs = 180_000;

/**
 * Allocates the resources of pods. An admitted pod gets the resources of its spec; a later edit of
 * the spec is a resize, which is allocated as soon as it fits. All components use the allocated
 * resources of a pod.
 */
export class AllocationManager {
  readonly #deps: AllocationManagerDeps;
  /**
   * The UIDs of pods whose spec differs from their allocation, except pods whose resize is
   * infeasible.
   */
  readonly #pending = new Set<PodUid>();
  readonly #hint: HintLatch;
  #trigger: ResizeTrigger = 'periodic_retry';
  readonly #pods: AllocatedPods;

  constructor(deps: AllocationManagerDeps) {
    this.#deps = deps;
    this.#pods = deps.allocatedPods;
    this.#hint = new HintLatch(deps.clock);
  }

  get size(): number {
    return this.#pending.size;
  }

  /**
   * Records the allocation of an admitted pod: the resources it was admitted with. Later edits of
   * the spec are resizes.
   */
  podAdmitted(pod: Pod, admitted: Pod): void {
    const { allocated, conditions } = this.#pods;
    const { uid } = pod.metadata;
    conditions.restore(pod);
    void allocated.set(uid, allocationOf(admitted));
    if (this.#pods.withAllocation(pod) === pod) return;
    this.#pending.add(uid);
    this.retrySoon('pods_added');
  }

  /** Called after a batch of pods was added or changed; retries the pending resizes. */
  podsAdded(): void {
    if (this.#pending.size > 0) this.retrySoon('pods_added');
  }

  /**
   * Called when the spec of a pod was edited. A resize that fits is allocated before this function
   * returns.
   */
  podUpdated(before: Pod | undefined, pod: Pod): void {
    const { uid } = pod.metadata;
    if (this.#pods.allocated.get(uid) === undefined) return;
    if (before !== undefined && sameAllocation(allocationOf(before), allocationOf(pod))) return;
    if (before !== undefined)
      for (const one of requestedResizes(before, pod)) this.#deps.observer?.requested(one);
    if (this.#pods.withAllocation(pod) === pod) {
      this.#pending.delete(uid);
      this.#pods.conditions.clearPending(uid);
      return;
    }
    this.#pending.add(uid);
    // The caller syncs the edited pod in any case, so no extra sync is requested.
    this.#retry('pod_updated', uid);
  }

  podRemoved(uid: PodUid): void {
    this.#pending.delete(uid);
    this.#pods.conditions.forget(uid);
    if (this.#pending.size > 0) this.retrySoon('pods_removed');
  }

  /** Called when capacity was released; retries the pending resizes. */
  capacityReleased(trigger: ResizeTrigger): void {
    if (this.#pending.size > 0) this.retrySoon(trigger);
  }

  retrySoon(trigger: ResizeTrigger): void {
    this.#trigger = trigger;
    this.#hint.raise();
  }

  /**
   * Retries pending resizes when capacity was released and every few minutes. Resolves when the
   * signal is aborted.
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = this.#deps.areSourcesReady() ? retryMs : firstRetryMs;
      const woken = await this.#hint.wait(waitMs, signal).catch(() => undefined);
      if (woken === undefined) return;
      this.#hint.clear();
      this.#retry(woken === 'hint' ? this.#trigger : 'periodic_retry');
    }
  }

  /**
   * Called at each sync of the pod; `resize` is `in-progress` until the pod runs with its allocated
   * resources.
   */
  resizeObserved(pod: Pod, resize: 'in-progress' | 'none'): void {
    const { journal } = this.#deps;
    const { conditions } = this.#pods;
    if (resize === 'in-progress') {
      conditions.goOn(pod);
      return;
    }
    const completed = conditions.complete(pod);
    if (completed === undefined) return;
    const message = resizeMessage('Pod resize completed', pod, completed.generation);
    journal.event(pod, { type: 'Normal', reason: 'ResizeCompleted', message });
    this.capacityReleased('pod_resized');
  }

  resizeFailed(pod: Pod, why: string): void {
    const { journal } = this.#deps;
    const { conditions } = this.#pods;
    const news = conditions.fail(pod, why);
    if (news === undefined) return;
    const message = resizeMessage('Pod resize error', pod, news.generation, why);
    journal.event(pod, { type: 'Warning', reason: 'ResizeError', message });
  }

  /** Called when the pod has terminated; drops its pending resize. */
  podTerminated(uid: PodUid): void {
    this.#pending.delete(uid);
    this.#pods.conditions.forget(uid);
    this.capacityReleased('pod_terminated');
  }

  retain(isKept: (uid: PodUid) => boolean): void {
    this.#pods.retain(isKept);
    for (const uid of this.#pending) if (!isKept(uid)) this.#pending.delete(uid);
  }

  #retry(trigger: ResizeTrigger, edited?: PodUid): void {
    if (this.#pending.size === 0 || !this.#deps.areSourcesReady()) return;
    const { syncPod } = this.#deps;
    const { conditions } = this.#pods;
    for (const pod of this.#inOrder()) {
      const { uid } = pod.metadata;
      const before = JSON.stringify(conditions.of(uid));
      const wasDeferred = conditions.pendingReason(uid) === 'Deferred';
      const outcome = this.#try(pod);
      if (outcome !== 'deferred') this.#pending.delete(uid);
      if (outcome === 'allocated' && wasDeferred) this.#deps.observer?.acceptedAfterWaiting(trigger);
      const isChange = outcome === 'allocated' || before !== JSON.stringify(conditions.of(uid));
      if (isChange && uid !== edited) syncPod(pod);
    }
  }

  #inOrder(): readonly Pod[] {
    const { findPod } = this.#deps;
    const { conditions } = this.#pods;
    const waiting = [...this.#pending].flatMap((uid) => {
      const pod = findPod(uid);
      if (pod === undefined) this.#pending.delete(uid);
      const sinceMs = conditions.pendingSinceMs(uid);
      return pod === undefined ? [] : [{ pod, allocated: this.#pods.withAllocation(pod), sinceMs }];
    });
    return sortResizes(waiting).map(({ pod }) => pod);
  }

  #try(pod: Pod): 'allocated' | 'as-it-is' | 'deferred' | 'infeasible' {
    const { checkAdmission, infeasibility, observer } = this.#deps;
    const { conditions } = this.#pods;
    const { uid } = pod.metadata;
    const allocated = this.#pods.withAllocation(pod);
    if (allocated === pod) {
      conditions.clearPending(uid);
      return 'as-it-is';
    }
    const never = infeasibility(pod, allocated);
    if (never !== undefined) {
      observer?.infeasible(never.detail);
      this.#wait(pod, 'Infeasible', { reason: 'Infeasible', message: never.message });
      return 'infeasible';
    }
    const rejection = checkAdmission(pod);
    if (rejection !== undefined) {
      this.#wait(pod, 'Deferred', rejection);
      return 'deferred';
    }
    this.#allocate(pod);
    return 'allocated';
  }

  #allocate(pod: Pod): void {
    const { journal, logger } = this.#deps;
    const { allocated, conditions } = this.#pods;
    const { uid, generation } = pod.metadata;
    void allocated.set(uid, allocationOf(pod));
    conditions.clearPending(uid);
    conditions.begin(pod);
    const message = resizeMessage('Pod resize started', pod, generation);
    journal.event(pod, { type: 'Normal', reason: 'ResizeStarted', message });
    logger.info('Started pod resize', { pod: describePod(pod), generation });
  }

  #wait(pod: Pod, pending: PendingReason, { reason, message }: Rejection): void {
    const { journal } = this.#deps;
    const { conditions } = this.#pods;
    if (!conditions.setPending(pod, pending, message)) return;
    const text = resizeMessage(`Pod resize ${reason}`, pod, pod.metadata.generation, message);
    journal.event(pod, { type: 'Warning', reason: `Resize${pending}`, message: text });
  }
}

/** A pod whose spec requests other resources than are allocated to it. */
export interface WaitingResize {
  /** The pod as desired, with the resources of its spec. */
  readonly pod: Pod;
  /** The pod with its allocated resources. */
  readonly allocated: Pod;
  /** The time since when the resize is pending; undefined for a new resize. */
  readonly sinceMs: number | undefined;
}

/**
 * Sorts the pending resizes: decreases first, because they release capacity; then by priority; then
 * Guaranteed pods; then the longest waiting.
 */
export function sortResizes(waiting: readonly WaitingResize[]): readonly WaitingResize[] {
  const ranked = waiting.map((one) => ({ one, rank: rankOf(one) }));
  return ranked.toSorted((a, b) => compare(a.rank, b.rank)).map(({ one }) => one);
}

/** Compares two lists of numbers lexicographically. */
function rankOf({ pod, allocated, sinceMs }: WaitingResize): readonly number[] {
  return [
    asksForMore(pod, allocated) ? 1 : 0,
    -(pod.spec.priority ?? 0),
    qosClass(pod) === 'Guaranteed' ? 0 : 1,
    sinceMs ?? Number.MAX_SAFE_INTEGER,
  ];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((rank, at) => rank !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

const nothing = parseQuantity('0');

function asksForMore(pod: Pod, allocated: Pod): boolean {
  const [requested, has] = [podRequests(pod), podRequests(allocated)];
  const isMore = (a: Quantity = nothing, b: Quantity = nothing) => compareQuantities(a, b) > 0;
  return ['cpu', 'memory'].some((name) => isMore(requested.get(name), has.get(name)));
}
