import { KubelingError, type Quantity, quantityMilliValue, quantityValue } from '../../lib/index.ts';
import { addResources, hugePageAmounts, type ResourceList, readResources } from '../../pods/index.ts';
import type { NodeAmount } from '../cgroups/pod-cgroup-values.ts';

/** The configuration fields that reserve resources. */
export interface Reservations {
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  /**
   * The CPUs reserved for the system, such as 0-1,4, which take precedence over reserved CPU
   * amounts; empty for none.
   */
  readonly reservedSystemCPUs: string;
  readonly enforceNodeAllocatable: readonly string[];
}

/** The value of a hard eviction threshold: an amount or a percentage of the capacity. */
export type FreeAmount = { readonly quantity: Quantity } | { readonly percent: number };

/** The amounts that hard eviction thresholds keep free in addition to the reservations. */
export interface KeptFree {
  readonly memory?: FreeAmount | undefined;
  readonly disk?: FreeAmount | undefined;
}

const nothing: NodeAmount = { milliCpu: 0, memoryBytes: 0 };

/**
 * Returns the reservation that the limits of kubepods enforce; zero unless enforceNodeAllocatable
 * includes pods.
 */
export function reservedAmount(reservations: Reservations): NodeAmount {
  return reservations.enforceNodeAllocatable.includes('pods') ? allReserved(reservations) : nothing;
}

/**
 * Returns the capacity that is not allocatable: reserved, kept free by eviction thresholds, or set
 * aside for huge pages.
 */
export function withheldAmount(
  reservations: Reservations,
  capacity: NodeAmount,
  free: FreeAmount | undefined,
): NodeAmount {
  const reserved = allReserved(reservations);
  const pages = [...(capacity.hugePages ?? new Map<string, number>()).values()];
  const kept = pages.reduce((sum, bytes) => sum + bytes, keptFree(free, capacity.memoryBytes));
  return { ...reserved, memoryBytes: reserved.memoryBytes + kept };
}

function keptFree(free: FreeAmount | undefined, all: number): number {
  if (free === undefined) return 0;
  return 'quantity' in free ? Number(quantityValue(free.quantity)) : Math.trunc((all * free.percent) / 100);
}

function allReserved(reservations: Reservations): NodeAmount {
  const cpus = cpuCount(reservations.reservedSystemCPUs);
  const amount = amountOf(listOf(reservations));
  return cpus === 0 ? amount : { ...amount, milliCpu: cpus * 1000 };
}

function listOf({ systemReserved, kubeReserved }: Reservations): ResourceList {
  return addResources(readResources(systemReserved), readResources(kubeReserved));
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

/**
 * The capacity of the machine. The disk is omitted if its size is unknown or it is not allocatable.
 */
export interface ReservableAmount extends NodeAmount {
  readonly diskBytes?: number | undefined;
}

/**
 * Throws RESERVATION_TOO_LARGE if the reservations exceed the capacity, even if they are not
 * enforced.
 */
export function checkReservations(
  reservations: Reservations,
  capacity: ReservableAmount,
  free: KeptFree,
): void {
  const reserved = allReserved(reservations);
  const disk = listOf(reservations).get('ephemeral-storage');
  const { memoryBytes, pids = Number.POSITIVE_INFINITY, diskBytes = Number.POSITIVE_INFINITY } = capacity;
  const kept = {
    memory: reserved.memoryBytes + keptFree(free.memory, memoryBytes),
    disk: (disk === undefined ? 0 : Number(quantityValue(disk))) + keptFree(free.disk, diskBytes),
  };
  const pages = Array.from(reserved.hugePages ?? [], ([size, bytes]) => {
    // Reservations of huge page sizes that the machine does not support are ignored.
    const all = capacity.hugePages?.get(size) ?? Number.POSITIVE_INFINITY;
    return [`huge pages of ${size}`, bytes, all, 'bytes'] as const;
  });
  const over = [
    ['cpu', reserved.milliCpu, capacity.milliCpu, 'thousandths of a core'] as const,
    ['memory', kept.memory, memoryBytes, 'bytes'] as const,
    ['ephemeral-storage', kept.disk, diskBytes, 'bytes'] as const,
    ['pid', reserved.pids ?? 0, pids, 'processes'] as const,
    ...pages,
  ].filter(([, wanted, all]) => wanted > all);
  if (over.length === 0) return;
  const said = over.map(([name, wanted, all, unit]) => `${name}: ${wanted} of ${all} ${unit}`).join(', ');
  throw new KubelingError(
    'RESERVATION_TOO_LARGE',
    `Cannot reserve resources as systemReserved, kubeReserved and evictionHard together exceed what the machine has: ${said}`,
  );
}

/**
 * Returns the maximum number of pods: maxPods, or podsPerCore times the number of CPUs if that is
 * lower and not 0.
 */
export function maxPods(
  { maxPods, podsPerCore }: { readonly maxPods: number; readonly podsPerCore: number },
  milliCpu: number,
): number {
  return podsPerCore > 0 ? Math.min(maxPods, podsPerCore * Math.ceil(milliCpu / 1_000)) : maxPods;
}

export function cpuCount(list: string): number {
  return list
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => part.split('-').map(Number))
    .reduce((count, [first = 0, last = first]) => count + last - first + 1, 0);
}
