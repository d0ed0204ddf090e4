import type { EvictionSignal } from '../../config/index.ts';

/** What pods are evicted for, by the names users read. */
export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

/** In the order in which they are told. */
export const pressureConditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

export type PressureCondition = (typeof pressureConditions)[number];

export function resourceOf(signal: EvictionSignal): StarvedResource {
  if (isMemory(signal)) return 'memory';
  if (signal === 'pid.available') return 'pids';
  return signal.endsWith('.inodesFree') ? 'inodes' : 'ephemeral-storage';
}

export function conditionOf(signal: EvictionSignal): PressureCondition {
  if (isMemory(signal)) return 'MemoryPressure';
  return signal === 'pid.available' ? 'PIDPressure' : 'DiskPressure';
}

export function isMemory(signal: EvictionSignal): boolean {
  return signal === 'memory.available' || signal === 'allocatableMemory.available';
}
