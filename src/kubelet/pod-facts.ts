import type { PodStatus } from '../kinds/index.ts';
import { isTerminalPhase, type Pod, type PodManager, type PodUid } from '../pods/index.ts';
import type { AllocatedPods } from '../resources/index.ts';
import type { WorkerState } from '../workers/index.ts';

export interface PodFactsDeps {
  readonly pods: Pick<PodManager, 'getPods' | 'getPodByUid'>;
  readonly statuses: { getPodStatus(uid: PodUid): PodStatus | undefined };
  readonly workers: Pick<WorkerState, 'isTerminated' | 'isTerminationRequested'> & {
    activePod(uid: PodUid): { readonly pod: Pod } | undefined;
  };
  readonly allocated: Pick<AllocatedPods, 'withAllocation'>;
}

/**
 * Returns facts about pods, which it derives from the desired pods, the workers and the statuses.
 */
export class PodFacts {
  readonly #deps: PodFactsDeps;

  constructor(deps: PodFactsDeps) {
    this.#deps = deps;
  }

  /** The pod as its source delivered it. */
  desired(uid: PodUid): Pod | undefined {
    return this.#deps.pods.getPodByUid(uid);
  }

  /** The version of the pod that its worker runs; undefined once no source has the pod. */
  podOfWorker(uid: PodUid): Pod | undefined {
    return this.desired(uid) === undefined ? undefined : this.#deps.workers.activePod(uid)?.pod;
  }

  /** The pod as its worker has it, or else as its source delivered it. */
  podOfWorkerOrSource(uid: PodUid): Pod | undefined {
    return this.#deps.workers.activePod(uid)?.pod ?? this.desired(uid);
  }

  /** The pod of the worker, or else of the source, with the current status. */
  podWithStatus(uid: PodUid): Pod | undefined {
    const pod = this.podOfWorkerOrSource(uid);
    return pod && { ...pod, status: this.#deps.statuses.getPodStatus(uid) ?? pod.status };
  }

  isTerminationRequested(uid: PodUid): boolean {
    return this.#deps.workers.isTerminationRequested(uid);
  }

  /** Whether the pod uses, or will use, resources of the node. */
  isActive(pod: Pod): boolean {
    const { uid } = pod.metadata;
    if (this.#deps.workers.isTerminated(uid)) return false;
    const isOver = isTerminalPhase(pod.status.phase) || this.#isOver(uid);
    return !isOver || this.isTerminationRequested(uid);
  }

  /** The active pods that match the predicate, with their allocated resources. */
  activePods(isMeant: (pod: Pod) => boolean = () => true): readonly Pod[] {
    return this.#deps.pods
      .getPods()
      .filter((pod) => isMeant(pod) && this.isActive(pod))
      .map((pod) => this.#deps.allocated.withAllocation(pod));
  }

  /** Whether the pod has finished or is terminating. */
  hasEnded(uid: PodUid): boolean {
    return this.isTerminationRequested(uid) || this.#isOver(uid);
  }

  /** The desired pods with their current status. */
  podsWithStatus(): readonly Pod[] {
    const { pods, statuses } = this.#deps;
    return pods
      .getPods()
      .map((pod) => ({ ...pod, status: statuses.getPodStatus(pod.metadata.uid) ?? pod.status }));
  }

  #isOver(uid: PodUid): boolean {
    return isTerminalPhase(this.#deps.statuses.getPodStatus(uid)?.phase);
  }
}
