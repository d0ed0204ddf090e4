import type { PodStatus } from '../kinds/index.ts';
import {
  isStaticPod,
  type ObservedPod,
  type Pod,
  type PodSource,
  type PodUid,
  sourceOf,
} from '../pods/index.ts';
import type { PodNotebook } from './pod-checkpoints.ts';
import { withNotedEnd } from './pod-end.ts';

/**
 * A `restored` pod was admitted by an earlier kubelet process since the machine booted, and its sandbox exists: it is not
 * rejected for what changed in the node's labels or resources since then.
 */
export type PodStanding = 'new' | 'restored';

export interface RestoredPodsDeps {
  readonly notes: Pick<
    PodNotebook,
    'get' | 'see' | 'statusOf' | 'closed' | 'unwanted' | 'ranInThisBoot' | 'secondsLeft'
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
  see(pod: Pod): Pod {
    const { notes } = this.#deps;
    // What this node has ended is over, whether or not the API has heard of it.
    const end = isStaticPod(pod) ? undefined : notes.get(pod.metadata.uid)?.end;
    if (end !== undefined) {
      notes.see(pod, 'goes-on');
      return withNotedEnd(pod, end);
    }
    const status = isStaticPod(pod) && this.#isFirstList(pod) ? notes.statusOf(pod.metadata.uid) : undefined;
    notes.see(pod, status === undefined ? 'anew' : 'goes-on');
    if (status === undefined) return pod;
    const { probed: _instances, ...told } = status;
    return { ...pod, status: { ...pod.status, ...told } };
  }

  /** The pod has ended before anything of it ran. */
  refused(pod: Pod, status: PodStatus): void {
    void this.#deps.notes.closed(pod, status);
  }

  /** Its source has the pod no more. */
  removed({ metadata: { uid } }: Pod): void {
    void this.#deps.notes.unwanted(uid);
  }

  /** One that has lived here since before this kubelet need not ask again whether it may. */
  standing({ metadata: { uid } }: Pod): PodStanding {
    return this.#deps.notes.ranInThisBoot(uid) && this.#hasLiveSandbox(uid) ? 'restored' : 'new';
  }

  /** What is left of the time to end to a pod that was being stopped; undefined for any other. */
  secondsLeft(uid: PodUid): number | undefined {
    return this.#deps.notes.secondsLeft(uid);
  }

  /**
   * Whether everybody who could want the pod has spoken: its own source, where that is known, or else all of them. A
   * source that is not set up any more wants nothing.
   */
  mayJudge(uid: PodUid): boolean {
    const { notes, sources } = this.#deps;
    if (sources.allReady()) return true;
    const source = notes.get(uid)?.source;
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
