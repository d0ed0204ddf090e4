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
 * A `restored` pod was admitted by a previous kubelet process since the machine booted, and its
 * sandbox exists: it is not rejected for later changes of the node's labels or resources.
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
  /** The last observation; throws if it failed. */
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
   * A source has delivered the pod. Returns it with the status to continue with: a static pod in
   * the first list of its source counts as unchanged since the checkpoint.
   */
  restore(pod: Pod): Pod {
    const { checkpoints } = this.#deps;
    // A pod this node killed stays finished, whether or not the API server has received it.
    const end = isStaticPod(pod) ? undefined : checkpoints.get(pod.metadata.uid)?.end;
    if (end !== undefined) {
      checkpoints.observeSource(pod, 'goes-on');
      return withPodEnd(pod, end);
    }
    const status =
      isStaticPod(pod) && this.#isFirstList(pod) ? checkpoints.statusOf(pod.metadata.uid) : undefined;
    checkpoints.observeSource(pod, status === undefined ? 'anew' : 'goes-on');
    if (status === undefined) return pod;
    const { probed: _instances, ...told } = status;
    return { ...pod, status: { ...pod.status, ...told } };
  }

  /** The pod was rejected before any container of it ran. */
  recordRejection(pod: Pod, status: PodStatus): void {
    void this.#deps.checkpoints.recordFinished(pod, status);
  }

  /** Its source has removed the pod. */
  recordRemoval({ metadata: { uid } }: Pod): void {
    void this.#deps.checkpoints.recordSourceRemoved(uid);
  }

  /** A restored pod is not admitted again. */
  standing({ metadata: { uid } }: Pod): PodStanding {
    return this.#deps.checkpoints.wasAdmittedInThisBoot(uid) && this.#hasLiveSandbox(uid)
      ? 'restored'
      : 'new';
  }

  /** The remaining grace period of a terminating pod; undefined for any other. */
  secondsLeft(uid: PodUid): number | undefined {
    return this.#deps.checkpoints.secondsLeft(uid);
  }

  /**
   * Whether the sources that could have the pod have delivered their pods: its own source where it
   * is recorded, else all of them. A source that is not configured any more has no pods.
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
