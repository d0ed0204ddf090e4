import type { Node } from '../kinds/index.ts';
import { type ResourceList, readResources } from '../pods/index.ts';
import type { KubeletSettings } from './settings.ts';

/** What pods may have of the machine: as its Node says, and what is known here of what that does not tell. */
export function allocatableOf(
  { capacity, reserved }: Pick<KubeletSettings, 'capacity' | 'reserved'>,
  node: Node | undefined,
): ResourceList {
  return readResources({
    cpu: `${Math.max(0, capacity.milliCpu - reserved.milliCpu)}m`,
    memory: `${Math.max(0, capacity.memoryBytes - reserved.memoryBytes)}`,
    ...node?.status?.allocatable,
  });
}
