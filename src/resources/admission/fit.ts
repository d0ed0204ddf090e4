import type { Node } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import {
  type Amounts,
  allocatableOf,
  isCountedResource,
  requestsOf,
  requestsOfNode,
  sumOf,
} from './amounts.ts';

/** A resource of the node of which too little is free for a pod. */
export interface Shortage {
  readonly kind: 'shortage';
  readonly resource: string;
  readonly requested: bigint;
  readonly used: bigint;
  readonly capacity: bigint;
}

/** The order in which insufficient resources are reported; all other resources follow. */
const reportOrder = ['cpu', 'memory', 'ephemeral-storage'];

/**
 * Returns the resources of which too little is free for the pod, given the requests of the other
 * pods.
 */
export function shortages(pod: Pod, node: Node, others: readonly Pod[]): readonly Shortage[] {
  const allocatable = allocatableOf(node);
  const requested = requestsOfNode(pod, allocatable);
  const used = sumOf(others.map(requestsOf));
  const named = [...reportOrder, ...[...requested.keys()].filter(isCountedResource).toSorted()];
  const short = named.map((name) => shortage(name, requested, used, allocatable));
  return [tooManyPods(others.length, allocatable), ...short].filter((one) => one !== undefined);
}

function shortage(
  resource: string,
  requests: Amounts,
  uses: Amounts,
  allocatable: Amounts,
): Shortage | undefined {
  const [requested, used, capacity] = [requests, uses, allocatable].map(
    (list) => list.get(resource) ?? 0n,
  ) as [bigint, bigint, bigint];
  if (requested <= 0n || requested <= capacity - used) return undefined;
  return { kind: 'shortage', resource, requested, used, capacity };
}

function tooManyPods(others: number, allocatable: Amounts): Shortage | undefined {
  const [used, capacity] = [BigInt(others), allocatable.get('pods') ?? 0n];
  if (used + 1n <= capacity) return undefined;
  return { kind: 'shortage', resource: 'pods', requested: 1n, used, capacity };
}

/** Returns how much of the resource must be released for the pod to fit. */
export function shortfall({ requested, used, capacity }: Shortage): bigint {
  return requested - (capacity - used);
}
