import type { StoredObject, WriteContext } from '../../core/index.ts';
import { admitPriority } from './priority.ts';
import { admitRuntimeClass } from './runtime-class.ts';
import { admitServiceAccount } from './service-account.ts';
import { admitTolerations } from './tolerations.ts';
import { admitTopology } from './topology-labels.ts';

/** In this order, as one may build on what another one did. What a node itself may write is judged elsewhere. */
export function admittedPod(pod: StoredObject, write: WriteContext): StoredObject {
  const { verb, subresource } = write;
  if (verb === 'create') return admittedNew(pod, write);
  if (verb === 'delete') return pod;
  return subresource === undefined ? admitTolerations(admitPriority(pod, write)) : pod;
}

function admittedNew(pod: StoredObject, write: WriteContext): StoredObject {
  const identified = admitServiceAccount(pod, write);
  const ranked = admitPriority(identified, write);
  return admitTopology(admitRuntimeClass(admitTolerations(ranked), write), write.objects);
}

export { checkCapacity } from './node-capacity.ts';
export { checkResourceClaims } from './resource-claims.ts';
export { checkOverheadOwner } from './runtime-class.ts';
export { topologyLabels } from './topology-labels.ts';
