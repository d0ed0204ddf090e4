import type { Node } from '../kinds/index.ts';
import { type ResourceList, readResources } from '../pods/index.ts';
import type { KubeletSettings } from './settings.ts';

/** What pods may have of the machine: as its Node says, and what is known here of what that does not tell. */
export function allocatableOf(
  { capacity, reserved, withheld = reserved }: Pick<KubeletSettings, 'capacity' | 'reserved' | 'withheld'>,
  node: Node | undefined,
): ResourceList {
  return readResources({
    cpu: `${Math.max(0, capacity.milliCpu - withheld.milliCpu)}m`,
    memory: `${Math.max(0, capacity.memoryBytes - withheld.memoryBytes)}`,
    ...node?.status?.allocatable,
  });
}
