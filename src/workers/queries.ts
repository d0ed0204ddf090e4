import type { PodFullName, PodUid } from '../pods/index.ts';
import type { WorkerState } from './worker-state.ts';

/**
 * The state of pods for other packages, which must check it before they act on resources of a pod.
 * For a pod without a worker most results depend on whether all sources have reported their pods:
 * before that, nothing may be removed.
 */
export class PodWorkerQueries {
  readonly #state: WorkerState;
  readonly #areSourcesReadyFor: (uid: PodUid) => boolean;

  /**
   * `areSourcesReadyFor` returns whether all sources that could have the pod have reported their
   * pods.
   */
  constructor(state: WorkerState, areSourcesReadyFor: (uid: PodUid) => boolean = () => true) {
    this.#state = state;
    this.#areSourcesReadyFor = areSourcesReadyFor;
  }

  /** For admission: whether the pod has terminated and holds no resources of the node any more. */
  isPodKnownTerminated(uid: PodUid): boolean {
    return this.#state.isTerminated(uid);
  }

  /**
   * For the status manager: whether containers of the pod may still run, so that a terminal phase
   * must not be published.
   */
  couldHaveRunningContainers(uid: PodUid): boolean {
    const worker = this.#state.find(uid);
    return worker === undefined ? !this.#isKnownDeleted(uid) : !worker.lifecycle.ended;
  }

  /** For the status manager: whether the API object of the pod may be deleted. */
  shouldPodBeFinished(uid: PodUid): boolean {
    const worker = this.#state.find(uid);
    return worker === undefined ? this.#isKnownDeleted(uid) : worker.lifecycle.state === 'finished';
  }

  /**
   * For syncs: whether the pod must terminate; if so, the sync must start no more of its
   * containers.
   */
  isPodTerminationRequested(uid: PodUid): boolean {
    return this.#state.isTerminationRequested(uid);
  }

  /**
   * For the volume manager: whether no container of the pod will be started any more, so that
   * volumes need not be set up.
   */
  shouldPodContainersBeTerminating(uid: PodUid): boolean {
    return this.#state.find(uid)?.lifecycle.terminationBegun ?? this.#isKnownDeleted(uid);
  }

  /**
   * For the volume manager: whether no container of the pod runs any more, so that its volumes may
   * be unmounted.
   */
  shouldPodRuntimeBeRemoved(uid: PodUid): boolean {
    return this.#state.find(uid)?.lifecycle.ended ?? this.#isKnownDeleted(uid);
  }

  /**
   * For garbage collection: whether dead containers, logs and images of the pod may be removed.
   * False for a pod that will run again, because its restart counts are derived from its dead
   * containers.
   */
  shouldPodContentBeRemoved(uid: PodUid): boolean {
    const worker = this.#state.find(uid);
    if (worker === undefined) return this.#isKnownDeleted(uid);
    return worker.evicted || (worker.deleted && worker.lifecycle.ended && !worker.restartRequested);
  }

  /**
   * For mirror pods: whether the static pod with this full name is terminating, so that its mirror
   * pod must not be deleted yet.
   */
  isPodForMirrorPodTerminatingByFullName(name: PodFullName): boolean {
    const uid = this.#state.holderOf(name);
    return uid !== undefined && this.#state.find(uid)?.lifecycle.state === 'terminating';
  }

  /**
   * For a pod without a worker: returns whether it is certain that no pod source contains the pod.
   */
  #isKnownDeleted(uid: PodUid): boolean {
    return this.#state.areAllSourcesReady && this.#areSourcesReadyFor(uid);
  }
}
