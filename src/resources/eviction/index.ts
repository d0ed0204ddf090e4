/** The entry point of the eviction manager. */
export type { DiskPart } from './disk-layout.ts';
export {
  type EvictionDeps,
  type EvictionKill,
  EvictionManager,
  type EvictionSettings,
} from './eviction-manager.ts';
export { type EvictionDecision, evictedReason, evictedStatus } from './eviction-message.ts';
export type {
  ContainerResourceUsage,
  DiskLayout,
  DiskObservation,
  EvictionStats,
  FilesUsage,
  MemoryObservation,
  NodeObservation,
  PodResourceUsage,
  SignalObservation,
  StatsRequirements,
} from './eviction-stats.ts';
export { KernelMemoryAlarm } from './kernel-memory-alarm.ts';
export {
  type MemoryGrowth,
  type MemoryHeadroom,
  type MemoryThresholdNotifier,
  type WatchMemory,
  watchMemory,
} from './memory-threshold-notifier.ts';
export { type EvictionObserver, evictionMetrics } from './metrics.ts';
export { type PressureCondition, pressureConditions } from './observations.ts';
export { ProvidedStats } from './provided-stats.ts';
