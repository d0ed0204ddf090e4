import type { PodStatus } from '../kinds/index.ts';
import {
  isStaticPod,
  type ObservedPod,
  type Pod,
  type PodSource,
  type PodUid,
  sourceOf,
} from '../pods/index.ts';
import type { PodCheckpoints } from './pod-checkpoints.ts';
import { withPodEnd } from './pod-end.ts';

/**
 * Whether a pod is new to this node. A `restored` pod was admitted by a previous kubelet process
 * since the machine booted, and its sandbox exists; it is not rejected because of later changes of
 * the node's labels or resources.
 */
export type PodStanding = 'new' | 'restored';

export interface RestoredPodsDeps {
  readonly checkpoints: Pick<
    PodCheckpoints,
    | 'get'
    | 'observeSource'
    | 'statusOf'
    | 'recordFinished'
    | 'recordSourceRemoved'
    | 'wasAdmittedInThisBoot'
    | 'secondsLeft'
  >;
  /** Returns the last observation of the pod in the runtime; throws if it failed. */
  readonly observed: (uid: PodUid) => ObservedPod;
  readonly sources: {
    allReady(): boolean;
    isReady(source: PodSource): boolean;
    readiness(): readonly { readonly source: PodSource }[];
  };
}

/** Applies the checkpoints of previous kubelet processes to the pods that sources deliver. */
export class RestoredPods {
  readonly #deps: RestoredPodsDeps;

  constructor(deps: RestoredPodsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the delivered pod with the status with which it continues. A static pod in the first
   * list of its source counts as unchanged, and gets the status in its checkpoint.
   */
  restore(pod: Pod): Pod {
    const { checkpoints } = this.#deps;
    // A pod that this node killed stays finished, even if the API server has not received its final
    // status.
    const end = isStaticPod(pod) ? undefined : checkpoints.get(pod.metadata.uid)?.end;
    if (end !== undefined) {
      checkpoints.observeSource(pod, 'continues');
      return withPodEnd(pod, end);
    }
    const status =
      isStaticPod(pod) && this.#isFirstList(pod) ? checkpoints.statusOf(pod.metadata.uid) : undefined;
    checkpoints.observeSource(pod, status === undefined ? 'restarts' : 'continues');
    if (status === undefined) return pod;
    const { probed: _instances, ...told } = status;
    return { ...pod, status: { ...pod.status, ...told } };
  }

  /** Records that the pod was rejected before any of its containers was started. */
  recordRejection(pod: Pod, status: PodStatus): void {
    void this.#deps.checkpoints.recordFinished(pod, status);
  }

  /** Records that the source has removed the pod. */
  recordRemoval({ metadata: { uid } }: Pod): void {
    void this.#deps.checkpoints.recordSourceRemoved(uid);
  }

  /** Returns whether the pod is new or restored; a restored pod passes admission without checks. */
  standing({ metadata: { uid } }: Pod): PodStanding {
    return this.#deps.checkpoints.wasAdmittedInThisBoot(uid) && this.#hasLiveSandbox(uid)
      ? 'restored'
      : 'new';
  }

  /** Returns the remaining grace period of a terminating pod; undefined for any other pod. */
  secondsLeft(uid: PodUid): number | undefined {
    return this.#deps.checkpoints.secondsLeft(uid);
  }

  /**
   * Whether all sources that could contain the pod have delivered their pods: its recorded source,
   * or else all sources. A source that is no longer configured contains no pods.
   */
  areSourcesReadyFor(uid: PodUid): boolean {
    const { checkpoints, sources } = this.#deps;
    if (sources.allReady()) return true;
    const source = checkpoints.get(uid)?.source;
    if (source === undefined) return false;
    return sources.isReady(source) || sources.readiness().every((one) => one.source !== source);
  }

  #isFirstList(pod: Pod): boolean {
    const source = sourceOf(pod);
    return (source === 'file' || source === 'http') && !this.#deps.sources.isReady(source);
  }

  #hasLiveSandbox(uid: PodUid): boolean {
    try {
      return this.#deps.observed(uid).sandboxes.some(({ state }) => state === 'ready');
    } catch {
      return false;
    }
  }
}
