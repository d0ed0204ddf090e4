import type { EvictionSignal, ThresholdValue } from '../../config/index.ts';
import { type Quantity, quantityOf, quantityValue } from '../../lib/index.ts';
import type { MemoryObservation, NodeObservation, SignalObservation } from './eviction-stats.ts';
export type Observations = ReadonlyMap<EvictionSignal, SignalObservation>;

/** Whether the kernel's MemAvailable, which includes reclaimable memory, counts as available. */
export type MemoryGuard = 'on' | 'off';

/** Returns the observation of each eviction signal. */
export function observationsOf(measures: NodeObservation, guard: MemoryGuard): Observations {
  const { memory, podsMemory, nodefs, imagefs, containerfs, pids } = measures;
  const found: Readonly<Record<EvictionSignal, SignalObservation | undefined>> = {
    'memory.available': guard === 'on' ? guarded(memory) : memory,
    'allocatableMemory.available': podsMemory,
    'nodefs.available': nodefs?.bytes,
    'nodefs.inodesFree': nodefs?.inodes,
    'imagefs.available': imagefs?.bytes,
    'imagefs.inodesFree': imagefs?.inodes,
    'containerfs.available': containerfs?.bytes,
    'containerfs.inodesFree': containerfs?.inodes,
    'pid.available': pids,
  };
  return new Map(
    Object.entries(found).flatMap(([signal, observation]) =>
      observation === undefined ? [] : [[signal as EvictionSignal, observation] as const],
    ),
  );
}

function guarded(memory: MemoryObservation | undefined): SignalObservation | undefined {
  const { kernelAvailable } = memory ?? {};
  if (memory === undefined || kernelAvailable === undefined) return memory;
  return { ...memory, available: Math.max(memory.available, kernelAvailable) };
}

/** Returns the absolute value of a threshold as number. */
export function amountOf(value: ThresholdValue, capacity: number): number {
  return Number(quantityValue(quantityFor(value, capacity)));
}

/** Returns the absolute value of a threshold as quantity. */
export function quantityFor(value: ThresholdValue, capacity: number): Quantity {
  if ('quantity' in value) return value.quantity;
  return quantityOf(Math.trunc((capacity * value.percent) / 100), 'BinarySI');
}

/** Returns the available amount of a signal as quantity. */
export function availableQuantity(signal: EvictionSignal, { available }: SignalObservation): Quantity {
  const resource = resourceOf(signal);
  return quantityOf(
    Math.trunc(available),
    resource === 'inodes' || resource === 'pids' ? 'DecimalSI' : 'BinarySI',
  );
}

/** The name of the starved resource in eviction messages. */
export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

/** The pressure conditions in their order in the node status. */
export const pressureConditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

export type PressureCondition = (typeof pressureConditions)[number];

/**
 * The starved resource and the node condition of each eviction signal. A new signal must get an
 * entry here.
 */
const subjects: Readonly<Record<EvictionSignal, readonly [StarvedResource, PressureCondition]>> = {
  'memory.available': ['memory', 'MemoryPressure'],
  'allocatableMemory.available': ['memory', 'MemoryPressure'],
  'nodefs.available': ['ephemeral-storage', 'DiskPressure'],
  'nodefs.inodesFree': ['inodes', 'DiskPressure'],
  'imagefs.available': ['ephemeral-storage', 'DiskPressure'],
  'imagefs.inodesFree': ['inodes', 'DiskPressure'],
  'containerfs.available': ['ephemeral-storage', 'DiskPressure'],
  'containerfs.inodesFree': ['inodes', 'DiskPressure'],
  'pid.available': ['pids', 'PIDPressure'],
};

export function resourceOf(signal: EvictionSignal): StarvedResource {
  return subjects[signal][0];
}

export function conditionOf(signal: EvictionSignal): PressureCondition {
  return subjects[signal][1];
}

export function isMemory(signal: EvictionSignal): boolean {
  return signal === 'memory.available' || signal === 'allocatableMemory.available';
}
