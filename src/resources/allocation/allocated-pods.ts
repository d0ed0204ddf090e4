import { type Pod, type PodAllocation, type PodUid, withAllocation } from '../../pods/index.ts';
import { maxAllocation, publishedAllocation } from './pod-allocation.ts';
import type { PodResourceFile } from './pod-resource-file.ts';
import type { ResizeConditions } from './resize-conditions.ts';

/** The allocated and actuated resources of each pod, as persisted, and the state of its resize. */
export class AllocatedPods {
  readonly allocated: PodResourceFile;
  readonly actuated: PodResourceFile;
  readonly conditions: ResizeConditions;
  /**
   * The pods with their allocated resources, one object per pod and allocation, because callers
   * compare pods by identity.
   */
  readonly #applied = new WeakMap<Pod, { readonly allocation: PodAllocation; readonly pod: Pod }>();

  constructor(
    files: { readonly allocated: PodResourceFile; readonly actuated: PodResourceFile },
    conditions: ResizeConditions,
  ) {
    this.allocated = files.allocated;
    this.actuated = files.actuated;
    this.conditions = conditions;
  }

  async open(): Promise<void> {
    await Promise.all([this.allocated.open(), this.actuated.open()]);
  }

  /**
   * Returns the pod with its allocated resources instead of those of its spec; the same object if
   * they are equal.
   */
  withAllocation(pod: Pod): Pod {
    const allocation = this.allocated.get(pod.metadata.uid) ?? publishedAllocation(pod);
    if (allocation === undefined) return pod;
    const known = this.#applied.get(pod);
    if (known?.allocation === allocation) return known.pod;
    const applied = withAllocation(pod, allocation);
    this.#applied.set(pod, { allocation, pod: applied });
    return applied;
  }

  /**
   * Returns the pod with the resources it occupies on the node: its allocation, or during a resize
   * the maximum of allocated and actuated resources.
   */
  counted(pod: Pod): Pod {
    const allocated = this.withAllocation(pod);
    const { uid } = pod.metadata;
    const actuated = this.conditions.isInProgress(uid) ? this.actuated.get(uid) : undefined;
    return actuated === undefined ? allocated : maxAllocation(allocated, actuated);
  }

  retain(isKept: (uid: PodUid) => boolean): void {
    this.allocated.retain(isKept);
    this.conditions.retain(isKept);
    this.actuated.retain(isKept);
  }

  held(): Readonly<Record<'allocated' | 'actuated' | 'resizes', number>> {
    return { allocated: this.allocated.size, actuated: this.actuated.size, resizes: this.conditions.size };
  }
}
