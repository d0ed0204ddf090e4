import type { Node } from '../../kinds/index.ts';
import { type ResourceList, readResources } from '../../pods/index.ts';
import type { NodeAmount } from '../cgroups/pod-cgroup-values.ts';

export interface AllocatableSettings {
  readonly capacity: NodeAmount;
  readonly reserved: NodeAmount;
  readonly withheld?: NodeAmount | undefined;
}

/** The allocatable resources: those of the Node object, completed by the values known here. */
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
