import type { ResourceRequirements } from '../../kinds/index.ts';
import { compareQuantities } from '../../lib/index.ts';
import { allocationOf, type Pod, readResources } from '../../pods/index.ts';
import type { RequestedResize } from './metrics.ts';

/** What an edit of the pod asks for, each amount by itself. */
export function requestedResizes(before: Pod, after: Pod): readonly RequestedResize[] {
  const [was, is] = [allocationOf(before), allocationOf(after)];
  return Object.keys(is.containers).flatMap((name) =>
    (['memory', 'cpu'] as const).flatMap((resource) =>
      (['requests', 'limits'] as const).flatMap((requirement) => {
        const operation = operationOf(was.containers[name], is.containers[name], requirement, resource);
        return operation === undefined ? [] : [{ resource, requirement, operation }];
      }),
    ),
  );
}

function operationOf(
  before: ResourceRequirements | undefined,
  after: ResourceRequirements | undefined,
  side: 'requests' | 'limits',
  resource: string,
): RequestedResize['operation'] | undefined {
  const [was, is] = [before, after].map((one) => readResources(one?.[side]).get(resource));
  if (was === undefined || is === undefined) {
    if (was === is) return undefined;
    return was === undefined ? 'add' : 'remove';
  }
  const order = compareQuantities(is, was);
  if (order === 0) return undefined;
  return order > 0 ? 'increase' : 'decrease';
}
