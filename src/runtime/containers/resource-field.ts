import type { Container, ResourceFieldSelector } from '../../kinds/index.ts';
import { KubelingError, milliQuantity, parseQuantity, type Quantity, quantityOf } from '../../lib/index.ts';
import {
  initContainersOf,
  isHugePages,
  isPodLevelResource,
  isPositive,
  type Pod,
  type ResourceList,
  readResources,
} from '../../pods/index.ts';

const plain = ['cpu', 'memory', 'ephemeral-storage'];

/**
 * How much of a resource a container asked for or may use, in units of the divisor, rounded up. Without a limit of
 * its own a container may use what its pod may, and without that all the node has to give.
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
  const found = [...pod.spec.containers, ...initContainersOf(pod)].find((other) => other.name === name);
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

/** CPU counts in thousandths and all else in whole units before they are divided. */
function inUnitsOf(amount: Quantity, divisor: Quantity, name: string): bigint {
  const grain = name === 'cpu' ? milliQuantity(1n).nanos : quantityOf(1n).nanos;
  return divideUp(divideUp(amount.nanos, grain), divideUp(divisor.nanos, grain));
}

function divideUp(value: bigint, by: bigint): bigint {
  return (value + by - 1n) / by;
}
