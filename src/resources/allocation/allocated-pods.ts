import { type Pod, type PodAllocation, type PodUid, withAllocation } from '../../pods/index.ts';
import { maxAllocation, publishedAllocation } from './pod-allocation.ts';
import type { PodResourceFile } from './pod-resource-file.ts';
import type { ResizeConditions } from './resize-conditions.ts';

/** What each pod was allocated and what its containers run with, as persisted, and the state of its resize. */
export class AllocatedPods {
  readonly allocated: PodResourceFile;
  readonly actuated: PodResourceFile;
  readonly conditions: ResizeConditions;
  /** One result for one pod and allocation: callers compare pods by identity. */
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

  /** The pod with its allocated resources instead of those of its spec; the same object where they are equal. */
  withAllocation(pod: Pod): Pod {
    const allocation = this.allocated.get(pod.metadata.uid) ?? publishedAllocation(pod);
    if (allocation === undefined) return pod;
    const known = this.#applied.get(pod);
    if (known?.allocation === allocation) return known.pod;
    const applied = withAllocation(pod, allocation);
    this.#applied.set(pod, { allocation, pod: applied });
    return applied;
  }

  /** The pod with the resources it takes of the node: its allocation, or during a resize the larger running values. */
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
