import { KubelingError, type Quantity, quantityMilliValue, quantityValue } from '../lib/index.ts';
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
  const reserved = allReserved(reservations);
  refuseTooMuch(reserved, capacity);
  return reservations.enforceNodeAllocatable.includes('pods') ? reserved : nothing;
}

/** Below which pods are evicted: an amount, or a share of what there is. */
export type FreeMemory = { readonly quantity: Quantity } | { readonly percent: number };

/** What is not for pods, whether they are held to it or not: reserved, kept free, or set aside for huge pages. */
export function withheldAmount(
  reservations: Reservations,
  capacity: NodeAmount,
  free: FreeMemory | undefined,
): NodeAmount {
  const reserved = allReserved(reservations);
  const pages = [...(capacity.hugePages ?? new Map<string, number>()).values()];
  const kept = pages.reduce((sum, bytes) => sum + bytes, keptFree(free, capacity.memoryBytes));
  return { ...reserved, memoryBytes: reserved.memoryBytes + kept };
}

function keptFree(free: FreeMemory | undefined, all: number): number {
  if (free === undefined) return 0;
  return 'quantity' in free ? Number(quantityValue(free.quantity)) : Math.trunc((all * free.percent) / 100);
}

function allReserved(reservations: Reservations): NodeAmount {
  const list = addResources(
    readResources(reservations.systemReserved),
    readResources(reservations.kubeReserved),
  );
  const cpus = cpuCount(reservations.reservedSystemCPUs);
  const amount = amountOf(list);
  return cpus === 0 ? amount : { ...amount, milliCpu: cpus * 1000 };
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
