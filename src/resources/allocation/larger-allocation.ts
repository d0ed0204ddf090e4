import type { ResourceRequirements } from '../../kinds/index.ts';
import { compareQuantities } from '../../lib/index.ts';
import {
  allocationOf,
  type Pod,
  type PodAllocation,
  readResources,
  withAllocation,
} from '../../pods/index.ts';

/** The pod with the larger of both for each request: what is being given back is still in use. */
export function largerOf(pod: Pod, other: PodAllocation): Pod {
  const own = allocationOf(pod);
  const containers = Object.entries(own.containers).map(
    ([name, resources]) => [name, larger(resources, other.containers[name])] as const,
  );
  const whole = own.pod === undefined ? undefined : larger(own.pod, other.pod);
  return withAllocation(pod, { containers: Object.fromEntries(containers), pod: whole });
}

function larger(own: ResourceRequirements, other: ResourceRequirements = {}): ResourceRequirements {
  const mine = readResources(own.requests);
  const its = readResources(other.requests);
  const requests = Object.fromEntries(
    ['cpu', 'memory'].flatMap((name) => {
      const [a, b] = [mine.get(name), its.get(name)];
      const isLarger = b !== undefined && (a === undefined || compareQuantities(b, a) > 0);
      const text = isLarger ? other.requests?.[name] : undefined;
      return text === undefined ? [] : [[name, text] as const];
    }),
  );
  return { ...own, requests: { ...own.requests, ...requests } };
}
