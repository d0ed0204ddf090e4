import type { Container, Node } from '../../kinds/index.ts';
import { type Quantity, quantityMilliValue, quantityValue } from '../../lib/index.ts';
import {
  initContainersOf,
  isHugePages,
  type Pod,
  podRequests,
  type ResourceList,
  readResources,
} from '../../pods/index.ts';

/**
 * Resource amounts in the units of comparisons and messages: millicores for CPU, otherwise whole
 * units.
 */
export type Amounts = ReadonlyMap<string, bigint>;

function amountsOf(list: ResourceList): Amounts {
  return new Map([...list].map(([name, amount]) => [name, unitsOf(name, amount)]));
}

/**
 * The requests of pods are cached because specs are immutable, and each admission sums the requests
 * of all pods of the node.
 */
const cachedRequests = new WeakMap<Pod['spec'], Amounts>();

/** Returns the requests of the pod. */
export function requestsOf(pod: Pod): Amounts {
  const known = cachedRequests.get(pod.spec);
  if (known !== undefined) return known;
  const requests = amountsOf(podRequests(pod));
  cachedRequests.set(pod.spec, requests);
  return requests;
}

export function unitsOf(name: string, amount: Quantity): bigint {
  return name === 'cpu' ? quantityMilliValue(amount) : quantityValue(amount);
}

export function allocatableOf(node: Node): Amounts {
  return amountsOf(readResources(node.status?.allocatable));
}

export function sumOf(lists: Iterable<Amounts>): Amounts {
  const sum = new Map<string, bigint>();
  for (const list of lists) for (const [name, amount] of list) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

/** Whether a resource is defined outside Kubernetes, such as the resources of device plugins. */
export function isExtendedResource(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.');
}

/** Whether the node has a limited amount of the resource. Admission ignores other resources. */
export function isCountedResource(name: string): boolean {
  return name.includes('/') || isHugePages(name) || name.startsWith('attachable-volumes-');
}

/**
 * Returns the requests that this node must fulfil. Excludes extended resources that the node does
 * not have, because the scheduler accounts for them, and extended resources that ResourceClaims
 * provide.
 */
export function requestsOfNode(pod: Pod, allocatable: Amounts): Amounts {
  const isRequested = (container: Container, name: string) =>
    !isClaimed(pod, container, name) && (!isExtendedResource(name) || allocatable.has(name));
  const withOwnRequests = (container: Container): Container => {
    const { requests } = container.resources ?? {};
    if (requests === undefined) return container;
    const kept = Object.entries(requests).filter(([name]) => isRequested(container, name));
    return { ...container, resources: { ...container.resources, requests: Object.fromEntries(kept) } };
  };
  const containers = pod.spec.containers.map(withOwnRequests);
  const initContainers = initContainersOf(pod).map(withOwnRequests);
  return amountsOf(podRequests({ ...pod, spec: { ...pod.spec, containers, initContainers } }));
}

function isClaimed({ status }: Pod, container: Container, name: string): boolean {
  const { requestMappings = [] } = status.extendedResourceClaimStatus ?? {};
  return requestMappings.some((one) => one.resourceName === name && one.containerName === container.name);
}
