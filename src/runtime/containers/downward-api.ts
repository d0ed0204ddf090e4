import { isIPv4, isIPv6 } from 'node:net';
import type { Container, ObjectFieldSelector, ResourceFieldSelector } from '../../kinds/index.ts';
import { KubelingError, milliQuantity, parseQuantity, type Quantity, quantityOf } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import {
  findNamed,
  initContainersOf,
  isHugePages,
  isPodLevelResource,
  isPositive,
  type ResourceList,
  readResources,
} from '../../pods/index.ts';
import { goQuote } from './go-format.ts';

/** The addresses for downward API fields that are not part of the pod object. */
export interface DownwardAddresses {
  readonly podIps: readonly string[];
  /** The addresses of the node; the preferred one is first. */
  readonly hostIps: readonly string[];
}

/**
 * Returns the value of a pod field for the downward API. Throws CONTAINER_CONFIG for an unsupported
 * field.
 */
export function podField(pod: Pod, { fieldPath }: ObjectFieldSelector, addresses: DownwardAddresses): string {
  const [, path = fieldPath, key] = /^([^[]+)\['(.*)'\]$/s.exec(fieldPath) ?? [];
  if (key !== undefined) return subscripted(pod, path, key, fieldPath);
  const podIps = orderPodIps(addresses.podIps, addresses.hostIps);
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return pod.metadata.namespace;
    case 'metadata.uid':
      return pod.metadata.uid;
    case 'metadata.labels':
      return formatMap(pod.metadata.labels);
    case 'metadata.annotations':
      return formatMap(pod.metadata.annotations);
    case 'spec.nodeName':
    case 'spec.host':
      return pod.spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return addresses.hostIps[0] ?? '';
    case 'status.hostIPs':
      return addresses.hostIps.join(',');
    case 'status.podIP':
      return podIps[0] ?? '';
    case 'status.podIPs':
      return podIps.join(',');
    default:
      throw new KubelingError('CONTAINER_CONFIG', `unsupported fieldPath: ${fieldPath}`);
  }
}

function subscripted(pod: Pod, path: string, key: string, fieldPath: string): string {
  if (path === 'metadata.labels') return pod.metadata.labels?.[key] ?? '';
  if (path === 'metadata.annotations') return pod.metadata.annotations?.[key] ?? '';
  throw new KubelingError('CONTAINER_CONFIG', `field label does not support subscript: ${fieldPath}`);
}

/** Formats a map as one line `key="value"` per entry, sorted by key. */
export function formatMap(map: Readonly<Record<string, string>> = {}): string {
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuote(map[key] ?? '')}`)
    .join('\n');
}

/** Returns one address per family; the family of the node's first address comes first. */
export function orderPodIps(podIps: readonly string[], nodeIps: readonly string[]): string[] {
  const families = isIPv6(nodeIps[0] ?? '') ? [isIPv6, isIPv4] : [isIPv4, isIPv6];
  return families.flatMap((isOfFamily) => podIps.find((ip) => isOfFamily(ip)) ?? []);
}

const plain = ['cpu', 'memory', 'ephemeral-storage'];

/**
 * Returns the request or limit of a container in units of the divisor, rounded up. A container
 * without a limit gets the limit of its pod, or the node's allocatable.
 */
export function resourceField(
  pod: Pod,
  container: Container,
  selector: ResourceFieldSelector,
  allocatable: ResourceList,
): string {
  const [, side, name = ''] = /^(requests|limits)\.(.+)$/.exec(selector.resource) ?? [];
  if ((side !== 'requests' && side !== 'limits') || !(plain.includes(name) || isHugePages(name))) {
    throw new KubelingError('CONTAINER_CONFIG', `unsupported container resource : ${selector.resource}`);
  }
  const about = namedContainer(pod, container, selector.containerName ?? '');
  const own = readResources(about.resources?.[side]).get(name);
  const mayFallBack = side === 'limits' && plain.includes(name) && !isPositive(own);
  const amount = mayFallBack ? fallback(pod, name, allocatable) : own;
  return `${inUnitsOf(amount ?? quantityOf(0n), divisorOf(selector), name)}`;
}

function namedContainer(pod: Pod, container: Container, name: string): Container {
  if (name === '') return container;
  const found = findNamed(pod.spec.containers, name) ?? findNamed(initContainersOf(pod), name);
  if (found !== undefined) return found;
  throw new KubelingError('CONTAINER_CONFIG', `container ${name} not found`);
}

function fallback(pod: Pod, name: string, allocatable: ResourceList): Quantity | undefined {
  const whole = isPodLevelResource(name) ? readResources(pod.spec.resources?.limits).get(name) : undefined;
  return isPositive(whole) ? whole : allocatable.get(name);
}

function divisorOf({ divisor = '0' }: ResourceFieldSelector): Quantity {
  const written = parseQuantity(divisor);
  return isPositive(written) ? written : quantityOf(1n);
}

/** Rounds CPU to thousandths of a core and all other resources to whole units. */
function inUnitsOf(amount: Quantity, divisor: Quantity, name: string): bigint {
  const grain = name === 'cpu' ? milliQuantity(1n).nanos : quantityOf(1n).nanos;
  return divideUp(divideUp(amount.nanos, grain), divideUp(divisor.nanos, grain));
}

function divideUp(value: bigint, by: bigint): bigint {
  return (value + by - 1n) / by;
}
