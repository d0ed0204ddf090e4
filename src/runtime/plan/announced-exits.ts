import { cancelledError, describeError, type Logger } from '../../lib/index.ts';
import type { ObservedPod, Pod, PodUid } from '../../pods/index.ts';
import type { RestartRequest } from '../runtime-manager.ts';

export interface AnnouncedExitsDeps {
  readonly logger: Logger;
  /** What the runtime last said; throws where it does not say. */
  readonly observed: (uid: PodUid) => ObservedPod;
  readonly findPod: (uid: PodUid) => Pod | undefined;
  readonly isTerminationRequested: (uid: PodUid) => boolean;
  readonly prepare: (request: RestartRequest, mayMake: () => boolean, signal: AbortSignal) => Promise<void>;
}

/**
 * Some runtimes tell that a container has ended long before they show it. What its restart needs is made in that time;
 * nothing starts before the end shows, and nothing is lost if it never does.
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
      logger.info('A restart is not prepared', { podUid: uid, because: describeError(error) });
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
