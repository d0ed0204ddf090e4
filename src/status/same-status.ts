import type { PodStatus } from '../kinds/index.ts';
import { sameJson } from '../pods/index.ts';
import { isOurCondition } from './conditions.ts';

/** Whether two statuses say the same of all that is the kubelet's to say. Both must be in their normal form. */
export function sameStatus(a: PodStatus, b: PodStatus): boolean {
  return sameJson(ours(a), ours(b));
}

function ours(status: PodStatus): object {
  const {
    conditions = [],
    resourceClaimStatuses: _claims,
    extendedResourceClaimStatus: _extended,
    nodeAllocatableResourceClaimStatuses: _node,
    ...rest
  } = status;
  const compared = conditions
    .filter(({ type }) => isOurCondition(type))
    .map(({ type, status: is, reason, message }) => [type, { is, reason, message }] as const);
  return { ...rest, conditions: Object.fromEntries(compared) };
}
