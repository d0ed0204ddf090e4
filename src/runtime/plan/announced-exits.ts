import { cancelledError, describeError, type Logger } from '../../lib/index.ts';
import type { ObservedPod, Pod, PodUid } from '../../pods/index.ts';
import type { RestartRequest } from '../runtime-manager.ts';

export interface AnnouncedExitsDeps {
  readonly logger: Logger;
  /**
   * Returns the last observation of the pod; throws if the last attempt to observe the pod has
   * failed.
   */
  readonly observed: (uid: PodUid) => ObservedPod;
  readonly findPod: (uid: PodUid) => Pod | undefined;
  readonly isTerminationRequested: (uid: PodUid) => boolean;
  readonly prepare: (request: RestartRequest, mayMake: () => boolean, signal: AbortSignal) => Promise<void>;
}

/**
 * Prepares restarts when the runtime announces an exit, because some runtimes list the exit much
 * later. Nothing is started before the exit is listed.
 */
export class AnnouncedExits implements Disposable {
  readonly #deps: AnnouncedExitsDeps;
  readonly #controller = new AbortController();

  constructor(deps: AnnouncedExitsDeps) {
    this.#deps = deps;
  }

  announced(uid: PodUid, containerId: string): void {
    const { findPod, isTerminationRequested, prepare, logger } = this.#deps;
    const { signal } = this.#controller;
    const pod = findPod(uid);
    const observed = this.#observed(uid);
    const mayMake = () => pod !== undefined && findPod(uid) === pod && !isTerminationRequested(uid);
    if (pod === undefined || observed === undefined || signal.aborted || !mayMake()) return;
    prepare({ pod, observed, containerId }, mayMake, signal).catch((error) => {
      if (signal.aborted) return;
      logger.info('Failed to prepare restart', { podUid: uid, because: describeError(error) });
    });
  }

  [Symbol.dispose](): void {
    this.#controller.abort(cancelledError('The kubelet ends'));
  }

  #observed(uid: PodUid): ObservedPod | undefined {
    try {
      return this.#deps.observed(uid);
    } catch {
      return undefined;
    }
  }
}
