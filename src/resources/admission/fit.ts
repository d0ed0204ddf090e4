import type { Node } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import {
  type Amounts,
  allocatableOf,
  isCountedResource,
  requestsHere,
  requestsOf,
  sumOf,
} from './amounts.ts';

/** A resource of which there is too little left. */
export interface Shortage {
  readonly kind: 'shortage';
  readonly resource: string;
  readonly requested: bigint;
  readonly used: bigint;
  readonly capacity: bigint;
}

/** In this order they are told, whatever else is short comes after them. */
const first = ['cpu', 'memory', 'ephemeral-storage'];

/** All that is short when the pod joins the others on the node. */
export function shortages(pod: Pod, node: Node, others: readonly Pod[]): readonly Shortage[] {
  const allocatable = allocatableOf(node);
  const requested = requestsHere(pod, allocatable);
  const used = sumOf(others.map(requestsOf));
  const named = [...first, ...[...requested.keys()].filter(isCountedResource).toSorted()];
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

/** How much has to become free for the pod to fit. */
export function missing({ requested, used, capacity }: Shortage): bigint {
  return requested - (capacity - used);
}
