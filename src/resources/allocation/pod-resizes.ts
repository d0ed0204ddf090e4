import type { PodCondition } from '../../kinds/index.ts';
import type { ObservedPod, Pod, PodAllocation, PodUid } from '../../pods/index.ts';
import type { SyncPodResult } from '../../runtime/index.ts';
import type { AllocationManager } from './allocation-manager.ts';

export interface PodResizesDeps {
  readonly runtime: {
    actuatedOf(pod: Pod, observed: ObservedPod): PodAllocation | undefined;
    isResizeInProgress(pod: Pod, observed: ObservedPod): boolean;
    cgroupMade(pod: Pod): void;
  };
  readonly manager: Pick<AllocationManager, 'resizeObserved' | 'resizeFailed'>;
  readonly conditions: { of(uid: PodUid): readonly PodCondition[] };
  /** The pod is to be looked at in all details, and worked on then. */
  readonly reinspect: (uid: PodUid) => void;
}

/** What a sync of a pod has to do with its resizes. */
export class PodResizes {
  readonly #deps: PodResizesDeps;

  constructor(deps: PodResizesDeps) {
    this.#deps = deps;
  }

  /** Before its status is made: whether the pod has what it was allocated. */
  see(pod: Pod, observed: ObservedPod): void {
    const { manager, runtime } = this.#deps;
    manager.resizeObserved(pod, runtime.isResizeInProgress(pod, observed) ? 'in-progress' : 'none');
  }

  /** For its status: where its resize stands, and what it has. */
  shown(
    pod: Pod,
    observed: ObservedPod,
  ): { readonly resize: readonly PodCondition[]; readonly actuated: PodAllocation | undefined } {
    const { conditions, runtime } = this.#deps;
    return { resize: conditions.of(pod.metadata.uid), actuated: runtime.actuatedOf(pod, observed) };
  }

  /** What the runtime has made of a resize shows in details that nobody looks at otherwise. */
  synced(pod: Pod, { actions }: SyncPodResult): void {
    const { manager, reinspect } = this.#deps;
    const done = actions.filter(({ action }) => action === 'ResizePodInPlace');
    for (const { failure } of done) if (failure !== undefined) manager.resizeFailed(pod, failure.message);
    if (done.length > 0) reinspect(pod.metadata.uid);
  }

  /** The pod has its cgroup, with what it was allocated. */
  cgroupMade(pod: Pod): void {
    this.#deps.runtime.cgroupMade(pod);
  }
}
