import type { PodFullName, PodUid } from '../pods/index.ts';
import type { PodLifecycle } from './lifecycle.ts';

/** What the queries need to know of a worker. */
export interface QueriedWorker {
  readonly lifecycle: PodLifecycle;
  readonly deleted: boolean;
  /** The same UID begins anew once this one is done. */
  readonly restartRequested: boolean;
  readonly evicted: boolean;
}

export interface QuerySource {
  find(uid: PodUid): QueriedWorker | undefined;
  /** The pod that was let run under the name. */
  holderOf(name: PodFullName): PodUid | undefined;
  /** Whether all who could want the pod have told the workers their pods, so that an unknown one is known to be gone. */
  readonly allKnown: (uid: PodUid) => boolean;
}

/**
 * What other rooms ask before they touch what belongs to a pod. Of a pod the workers do not know most answers depend
 * on whether they have been told of all pods yet: before that nothing may be taken away.
 */
export class PodWorkerQueries {
  readonly #source: QuerySource;

  constructor(source: QuerySource) {
    this.#source = source;
  }

  /** For admission: a pod that holds nothing of the node any more. */
  isPodKnownTerminated(uid: PodUid): boolean {
    return this.#source.find(uid)?.lifecycle.ended ?? false;
  }

  /** For the status manager: whether a terminal phase must still be held back. */
  couldHaveRunningContainers(uid: PodUid): boolean {
    const worker = this.#source.find(uid);
    return worker === undefined ? !this.#source.allKnown(uid) : !worker.lifecycle.ended;
  }

  /** For the status manager: whether the pod's API object may go. */
  shouldPodBeFinished(uid: PodUid): boolean {
    const worker = this.#source.find(uid);
    return worker === undefined ? this.#source.allKnown(uid) : worker.lifecycle.state === 'finished';
  }

  /** For syncs: whether to stop bringing the pod up. */
  isPodTerminationRequested(uid: PodUid): boolean {
    return this.#source.find(uid)?.lifecycle.terminationRequested ?? false;
  }

  /** For the volume manager: no container will be started any more, so no volume is needed for one. */
  shouldPodContainersBeTerminating(uid: PodUid): boolean {
    return this.#source.find(uid)?.lifecycle.terminationSeen ?? this.#source.allKnown(uid);
  }

  /** For the volume manager: nothing runs any more, so volumes may be unmounted. */
  shouldPodRuntimeBeRemoved(uid: PodUid): boolean {
    return this.#source.find(uid)?.lifecycle.ended ?? this.#source.allKnown(uid);
  }

  /**
   * For garbage collection: dead containers, logs and images of the pod may go. Not of one that is to run again: its
   * containers tell how often each was started.
   */
  shouldPodContentBeRemoved(uid: PodUid): boolean {
    const worker = this.#source.find(uid);
    if (worker === undefined) return this.#source.allKnown(uid);
    return worker.evicted || (worker.deleted && worker.lifecycle.ended && !worker.restartRequested);
  }

  /** For mirror pods: the static pod of that name is on its way out, so its shadow must stay for now. */
  isPodForMirrorPodTerminatingByFullName(name: PodFullName): boolean {
    const uid = this.#source.holderOf(name);
    return uid !== undefined && this.#source.find(uid)?.lifecycle.state === 'terminating';
  }
}
