import type { PodFullName, PodUid } from '../pods/index.ts';
import type { WorkerState } from './worker-state.ts';

/**
 * What other packages must check before they act on what belongs to a pod. For a pod without a worker most answers
 * depend on whether all sources have reported their pods: before that nothing may be removed.
 */
export class PodWorkerQueries {
  readonly #state: WorkerState;
  readonly #areSourcesReadyFor: (uid: PodUid) => boolean;

  /** `areSourcesReadyFor` tells whether all sources that could have the pod have reported their pods. */
  constructor(state: WorkerState, areSourcesReadyFor: (uid: PodUid) => boolean = () => true) {
    this.#state = state;
    this.#areSourcesReadyFor = areSourcesReadyFor;
  }

  /** For admission: a pod that holds nothing of the node any more. */
  isPodKnownTerminated(uid: PodUid): boolean {
    return this.#state.isTerminated(uid);
  }

  /** For the status manager: whether a terminal phase must still be held back. */
  couldHaveRunningContainers(uid: PodUid): boolean {
    const worker = this.#state.find(uid);
    return worker === undefined ? !this.#isKnownDeleted(uid) : !worker.lifecycle.ended;
  }

  /** For the status manager: whether the pod's API object may go. */
  shouldPodBeFinished(uid: PodUid): boolean {
    const worker = this.#state.find(uid);
    return worker === undefined ? this.#isKnownDeleted(uid) : worker.lifecycle.state === 'finished';
  }

  /** For syncs: whether to stop bringing the pod up. */
  isPodTerminationRequested(uid: PodUid): boolean {
    return this.#state.isTerminationRequested(uid);
  }

  /** For the volume manager: no container will be started any more, so no volume is needed for one. */
  shouldPodContainersBeTerminating(uid: PodUid): boolean {
    return this.#state.find(uid)?.lifecycle.terminationBegun ?? this.#isKnownDeleted(uid);
  }

  /** For the volume manager: nothing runs any more, so volumes may be unmounted. */
  shouldPodRuntimeBeRemoved(uid: PodUid): boolean {
    return this.#state.find(uid)?.lifecycle.ended ?? this.#isKnownDeleted(uid);
  }

  /**
   * For garbage collection: whether dead containers, logs and images of the pod may be removed. Not
   * for a pod that will run again: its containers count the restarts.
   */
  shouldPodContentBeRemoved(uid: PodUid): boolean {
    const worker = this.#state.find(uid);
    if (worker === undefined) return this.#isKnownDeleted(uid);
    return worker.evicted || (worker.deleted && worker.lifecycle.ended && !worker.restartRequested);
  }

  /**
   * For mirror pods: whether the static pod of that name is terminating, so that its mirror pod
   * must stay for now.
   */
  isPodForMirrorPodTerminatingByFullName(name: PodFullName): boolean {
    const uid = this.#state.holderOf(name);
    return uid !== undefined && this.#state.find(uid)?.lifecycle.state === 'terminating';
  }

  /** Whether no source has a pod that has no worker. */
  #isKnownDeleted(uid: PodUid): boolean {
    return this.#state.areAllSourcesReady && this.#areSourcesReadyFor(uid);
  }
}
