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

/** Amounts in the units they are compared and told in: thousandths of a core, otherwise whole units. */
export type Amounts = ReadonlyMap<string, bigint>;

function amountsOf(list: ResourceList): Amounts {
  return new Map([...list].map(([name, amount]) => [name, unitsOf(name, amount)]));
}

/** Specs do not change, and all of a node's pods are asked for each pod that comes. */
const knownRequests = new WeakMap<Pod['spec'], Amounts>();

/** What the pod has asked for, wherever it is. */
export function requestsOf(pod: Pod): Amounts {
  const known = knownRequests.get(pod.spec);
  if (known !== undefined) return known;
  const requests = amountsOf(podRequests(pod));
  knownRequests.set(pod.spec, requests);
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

/** Resources that whoever runs the cluster has made up, by names of his own. */
export function isExtendedResource(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.');
}

/** Whether there is a limited number of it on a node. What else a pod may name is for others to mind. */
export function isCountedResource(name: string): boolean {
  return name.includes('/') || isHugePages(name) || name.startsWith('attachable-volumes-');
}

/**
 * What the pod asks of this node. Extended resources the node does not have are not its to give, but the cluster's; those
 * that claims stand for are counted there.
 */
export function requestsHere(pod: Pod, allocatable: Amounts): Amounts {
  const isAsked = (container: Container, name: string) =>
    !isClaimed(pod, container, name) && (!isExtendedResource(name) || allocatable.has(name));
  const asked = (container: Container): Container => {
    const { requests } = container.resources ?? {};
    if (requests === undefined) return container;
    const kept = Object.entries(requests).filter(([name]) => isAsked(container, name));
    return { ...container, resources: { ...container.resources, requests: Object.fromEntries(kept) } };
  };
  const containers = pod.spec.containers.map(asked);
  const initContainers = initContainersOf(pod).map(asked);
  return amountsOf(podRequests({ ...pod, spec: { ...pod.spec, containers, initContainers } }));
}

function isClaimed({ status }: Pod, container: Container, name: string): boolean {
  const { requestMappings = [] } = status.extendedResourceClaimStatus ?? {};
  return requestMappings.some((one) => one.resourceName === name && one.containerName === container.name);
}
