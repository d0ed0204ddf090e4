import type { PodCondition } from '../../kinds/index.ts';
import type { ObservedPod, Pod, PodAllocation, PodUid } from '../../pods/index.ts';
import type { SyncPodResult } from '../../runtime/index.ts';
import type { AllocationManager } from './allocation-manager.ts';

export interface PodResizesDeps {
  readonly runtime: {
    actuatedOf(pod: Pod, observed: ObservedPod): PodAllocation | undefined;
    isResizeInProgress(pod: Pod, observed: ObservedPod): boolean;
    cgroupCreated(pod: Pod): void;
  };
  readonly manager: Pick<AllocationManager, 'resizeObserved' | 'resizeFailed'>;
  readonly conditions: { of(uid: PodUid): readonly PodCondition[] };
  /** Requests a sync of the pod with a full inspection of its containers. */
  readonly reinspect: (uid: PodUid) => void;
}

/** Connects the sync of a pod with its resizes. */
export class PodResizes {
  readonly #deps: PodResizesDeps;

  constructor(deps: PodResizesDeps) {
    this.#deps = deps;
  }

  /**
   * Called before the status is generated: compares the actuated resources with the allocated ones.
   */
  observe(pod: Pod, observed: ObservedPod): void {
    const { manager, runtime } = this.#deps;
    manager.resizeObserved(pod, runtime.isResizeInProgress(pod, observed) ? 'in-progress' : 'none');
  }

  /** Returns the resize conditions and the actuated resources for the status. */
  statusOf(
    pod: Pod,
    observed: ObservedPod,
  ): { readonly resize: readonly PodCondition[]; readonly actuated: PodAllocation | undefined } {
    const { conditions, runtime } = this.#deps;
    return { resize: conditions.of(pod.metadata.uid), actuated: runtime.actuatedOf(pod, observed) };
  }

  /**
   * Requests a full inspection of the containers after a resize, because only a full inspection
   * shows the result of the resize.
   */
  synced(pod: Pod, { actions }: SyncPodResult): void {
    const { manager, reinspect } = this.#deps;
    const done = actions.filter(({ action }) => action === 'ResizePodInPlace');
    for (const { failure } of done) if (failure !== undefined) manager.resizeFailed(pod, failure.message);
    if (done.length > 0) reinspect(pod.metadata.uid);
  }

  /** Called when the cgroup of the pod was created with its allocated resources. */
  cgroupCreated(pod: Pod): void {
    this.#deps.runtime.cgroupCreated(pod);
  }
}
