import type { PodStatus } from '../kinds/index.ts';
import { formatQuantity } from '../lib/index.ts';
import { heldLimits, type Pod, podRequests, type ResourceList } from '../pods/index.ts';

/** What the pod as a whole was allotted, and what its own cgroup holds it to. */
export function podResourceFields(pod: Pod): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const requests = written(podRequests(pod));
  const limits = written(heldLimits(pod));
  return {
    allocatedResources: requests,
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
