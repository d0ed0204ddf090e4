import type { PodStatus } from '../kinds/index.ts';
import { formatQuantity } from '../lib/index.ts';
import {
  heldLimits,
  type Pod,
  type PodAllocation,
  podRequests,
  type ResourceList,
  withAllocation,
} from '../pods/index.ts';

/** What the pod as a whole was allotted, and what its own cgroup holds it to. */
export function podResourceFields(
  pod: Pod,
  actuated: PodAllocation | undefined,
): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const given = actuated === undefined ? pod : withAllocation(pod, actuated);
  const requests = written(podRequests(given));
  const limits = written(heldLimits(given));
  return {
    allocatedResources: written(podRequests(pod)),
    resources: {
      ...(requests === undefined ? {} : { requests }),
      ...(limits === undefined ? {} : { limits }),
    },
  };
}

function written(list: ResourceList): Readonly<Record<string, string>> | undefined {
  if (list.size === 0) return undefined;
  return Object.fromEntries(Array.from(list, ([name, amount]) => [name, formatQuantity(amount)]));
}
