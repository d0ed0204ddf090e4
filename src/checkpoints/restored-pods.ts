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
 * A `restored` pod was admitted by an earlier kubelet process since the machine booted, and its sandbox exists: it is not
 * rejected for what changed in the node's labels or resources since then.
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
  /** What the runtime last said; throws where it does not say. */
  readonly observed: (uid: PodUid) => ObservedPod;
  readonly sources: {
    allReady(): boolean;
    isReady(source: PodSource): boolean;
    readiness(): readonly { readonly source: PodSource }[];
  };
}

/** What follows for a pod from what earlier kubelets have noted of it. */
export class RestoredPods {
  readonly #deps: RestoredPodsDeps;

  constructor(deps: RestoredPodsDeps) {
    this.#deps = deps;
  }

  /**
   * A source has brought the pod. Answers it with the status to go on with: a static pod that is in the first list of
   * its source was there all the time, as far as anybody can tell.
   */
  restore(pod: Pod): Pod {
    const { checkpoints } = this.#deps;
    // What this node has ended is over, whether or not the API has heard of it.
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

  /** The pod has ended before anything of it ran. */
  recordRejection(pod: Pod, status: PodStatus): void {
    void this.#deps.checkpoints.recordFinished(pod, status);
  }

  /** Its source has the pod no more. */
  recordRemoval({ metadata: { uid } }: Pod): void {
    void this.#deps.checkpoints.recordSourceRemoved(uid);
  }

  /** One that has lived here since before this kubelet need not ask again whether it may. */
  standing({ metadata: { uid } }: Pod): PodStanding {
    return this.#deps.checkpoints.wasAdmittedInThisBoot(uid) && this.#hasLiveSandbox(uid)
      ? 'restored'
      : 'new';
  }

  /** What is left of the time to end to a pod that was being stopped; undefined for any other. */
  secondsLeft(uid: PodUid): number | undefined {
    return this.#deps.checkpoints.secondsLeft(uid);
  }

  /**
   * Whether everybody who could want the pod has spoken: its own source, where that is known, or else all of them. A
   * source that is not set up any more wants nothing.
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
