import { KubelingError, quantityMilliValue, quantityValue } from '../lib/index.ts';
import { addResources, hugePageAmounts, type ResourceList, readResources } from '../pods/index.ts';
import type { NodeAmount } from './pod-values.ts';

/** The parts of the configuration that keep resources from pods. */
export interface Reservations {
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  /** A list of CPUs such as 0-1,4, which goes before any amount of CPU; empty for none. */
  readonly reservedSystemCPUs: string;
  readonly enforceNodeAllocatable: readonly string[];
}

const nothing: NodeAmount = { milliCpu: 0, memoryBytes: 0 };

/**
 * What the cgroup of all pods has to leave out. Nothing unless pods are to be held to it. Throws RESERVATION_TOO_LARGE
 * when more is reserved than there is, enforced or not.
 */
export function reservedAmount(reservations: Reservations, capacity: NodeAmount): NodeAmount {
  const list = addResources(
    readResources(reservations.systemReserved),
    readResources(reservations.kubeReserved),
  );
  const cpus = cpuCount(reservations.reservedSystemCPUs);
  const amount = amountOf(list);
  const reserved = cpus === 0 ? amount : { ...amount, milliCpu: cpus * 1000 };
  refuseTooMuch(reserved, capacity);
  return reservations.enforceNodeAllocatable.includes('pods') ? reserved : nothing;
}

function amountOf(list: ResourceList): NodeAmount {
  const [cpu, memory, pids] = ['cpu', 'memory', 'pid'].map((name) => list.get(name));
  return {
    milliCpu: cpu === undefined ? 0 : Number(quantityMilliValue(cpu)),
    memoryBytes: memory === undefined ? 0 : Number(quantityValue(memory)),
    pids: pids === undefined ? 0 : Number(quantityValue(pids)),
    hugePages: new Map(Array.from(hugePageAmounts(list), ([size, bytes]) => [size, Number(bytes)])),
  };
}

function refuseTooMuch(reserved: NodeAmount, capacity: NodeAmount): void {
  const pairs = [
    ['cpu', reserved.milliCpu, capacity.milliCpu, 'thousandths of a core'],
    ['memory', reserved.memoryBytes, capacity.memoryBytes, 'bytes'],
    ['pid', reserved.pids ?? 0, capacity.pids ?? Number.POSITIVE_INFINITY, 'processes'],
  ] as const;
  const over = pairs.filter(([, kept, all]) => kept > all);
  if (over.length === 0) return;
  const said = over.map(([name, kept, all, unit]) => `${name}: ${kept} of ${all} ${unit}`).join(', ');
  throw new KubelingError(
    'RESERVATION_TOO_LARGE',
    `Cannot reserve more than the machine has, as systemReserved and kubeReserved do together: ${said}`,
  );
}

export function cpuCount(list: string): number {
  return list
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => part.split('-').map(Number))
    .reduce((count, [first = 0, last = first]) => count + last - first + 1, 0);
}
