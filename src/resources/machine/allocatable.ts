import type { Node } from '../../kinds/index.ts';
import { type ResourceList, readResources } from '../../pods/index.ts';
import type { NodeAmount } from '../cgroups/pod-cgroup-values.ts';

export interface AllocatableSettings {
  readonly capacity: NodeAmount;
  readonly reserved: NodeAmount;
  readonly withheld?: NodeAmount | undefined;
}

/**
 * Returns the allocatable resources of the Node object; those it does not contain are computed from
 * the capacity and the reservations.
 */
export function allocatableOf(
  { capacity, reserved, withheld = reserved }: AllocatableSettings,
  node: Node | undefined,
): ResourceList {
  return readResources({
    cpu: `${Math.max(0, capacity.milliCpu - withheld.milliCpu)}m`,
    memory: `${Math.max(0, capacity.memoryBytes - withheld.memoryBytes)}`,
    ...node?.status?.allocatable,
  });
}
