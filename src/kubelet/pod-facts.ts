import type { PodStatus } from '../kinds/index.ts';
import { isTerminalPhase, type Pod, type PodUid } from '../pods/index.ts';

/** Those who know of pods. They ask about pods themselves and may come to be later: each is read when it is needed. */
export interface PodKnowers {
  readonly pods: {
    getPods(): readonly Pod[];
    getPodByUid(uid: PodUid): Pod | undefined;
    translatePodUid(uid: PodUid): PodUid;
  };
  readonly statuses: { getPodStatus(uid: PodUid): PodStatus | undefined };
  readonly workers: {
    activePod(uid: PodUid): { readonly pod: Pod } | undefined;
    readonly queries: {
      isPodKnownTerminated(uid: PodUid): boolean;
      isPodTerminationRequested(uid: PodUid): boolean;
    };
  };
}

/** What several parts of the kubelet ask about pods, answered from what is wanted, worked on and published. */
export class PodFacts {
  readonly #knowers: PodKnowers;
  readonly #withAllocation: (pod: Pod) => Pod;

  /** `withAllocation` answers a pod with what it was allocated in place of what it asks for. */
  constructor(knowers: PodKnowers, withAllocation: (pod: Pod) => Pod = (pod) => pod) {
    this.#knowers = knowers;
    this.#withAllocation = withAllocation;
  }

  /** As a source wants it. */
  wanted(uid: PodUid): Pod | undefined {
    return this.#knowers.pods.getPodByUid(uid);
  }

  /** Also by the UID of its mirror. */
  wantedOrMirrored(uid: PodUid): Pod | undefined {
    return this.wanted(this.#knowers.pods.translatePodUid(uid));
  }

  /** As its worker has it; undefined once no source wants it. */
  workedOn(uid: PodUid): Pod | undefined {
    return this.wanted(uid) === undefined ? undefined : this.#knowers.workers.activePod(uid)?.pod;
  }

  /** As its worker has it, or else a source. */
  known(uid: PodUid): Pod | undefined {
    return this.#knowers.workers.activePod(uid)?.pod ?? this.wanted(uid);
  }

  /** The same, with the status it has here. */
  knownWithStatus(uid: PodUid): Pod | undefined {
    const pod = this.known(uid);
    return pod && { ...pod, status: this.#knowers.statuses.getPodStatus(uid) ?? pod.status };
  }

  isTerminationRequested(uid: PodUid): boolean {
    return this.#knowers.workers.queries.isPodTerminationRequested(uid);
  }

  /** Whether the pod uses, or will use, anything of the node. */
  isActive(pod: Pod): boolean {
    const { uid } = pod.metadata;
    if (this.#knowers.workers.queries.isPodKnownTerminated(uid)) return false;
    const isOver = isTerminalPhase(pod.status.phase) || this.#isOver(uid);
    return !isOver || this.isTerminationRequested(uid);
  }

  /** Of those that are meant, or of all unless given, with what they were allocated. */
  active(isMeant: (pod: Pod) => boolean = () => true): readonly Pod[] {
    return this.#knowers.pods
      .getPods()
      .filter((pod) => isMeant(pod) && this.isActive(pod))
      .map(this.#withAllocation);
  }

  /** Whether the pod is over, or has been told to end. */
  hasEnded(uid: PodUid): boolean {
    return this.isTerminationRequested(uid) || this.#isOver(uid);
  }

  /** The wanted pods with the status they have here. */
  withStatus(): readonly Pod[] {
    const { pods, statuses } = this.#knowers;
    return pods
      .getPods()
      .map((pod) => ({ ...pod, status: statuses.getPodStatus(pod.metadata.uid) ?? pod.status }));
  }

  #isOver(uid: PodUid): boolean {
    return isTerminalPhase(this.#knowers.statuses.getPodStatus(uid)?.phase);
  }
}
