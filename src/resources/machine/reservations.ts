import { KubelingError, type Quantity, quantityMilliValue, quantityValue } from '../../lib/index.ts';
import { addResources, hugePageAmounts, type ResourceList, readResources } from '../../pods/index.ts';
import type { NodeAmount } from '../cgroups/pod-cgroup-values.ts';

/** The parts of the configuration that keep resources from pods. */
export interface Reservations {
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  /** A list of CPUs such as 0-1,4, which goes before any amount of CPU; empty for none. */
  readonly reservedSystemCPUs: string;
  readonly enforceNodeAllocatable: readonly string[];
}

/** Below which pods are evicted: an amount, or a share of what there is. */
export type FreeAmount = { readonly quantity: Quantity } | { readonly percent: number };

/** What is kept free beside what is reserved. */
export interface KeptFree {
  readonly memory?: FreeAmount | undefined;
  readonly disk?: FreeAmount | undefined;
}

const nothing: NodeAmount = { milliCpu: 0, memoryBytes: 0 };

/** What the cgroup of all pods has to leave out. Nothing unless pods are to be held to it. */
export function reservedAmount(reservations: Reservations): NodeAmount {
  return reservations.enforceNodeAllocatable.includes('pods') ? allReserved(reservations) : nothing;
}

/** What is not for pods, whether they are held to it or not: reserved, kept free, or set aside for huge pages. */
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

/** What there is to reserve of. A disk is left out whose size nobody tells, or that is not shared out. */
export interface ReservableAmount extends NodeAmount {
  readonly diskBytes?: number | undefined;
}

/** Throws RESERVATION_TOO_LARGE when more is reserved and kept free than there is, enforced or not. */
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
    // Pages of a size that the machine does not have are kept from nobody.
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
    `Cannot reserve more than the machine has, as systemReserved, kubeReserved and evictionHard do together: ${said}`,
  );
}

/** How many pods the node takes: so many, and of each core no more than so many unless that is 0. */
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
