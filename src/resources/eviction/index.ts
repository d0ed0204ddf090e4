/** The eviction manager: what a node does when it is short of something. */
export type { DiskPart } from './disk-layout.ts';
export {
  type EvictionDeps,
  type EvictionKill,
  EvictionManager,
  type EvictionSettings,
} from './eviction-manager.ts';
export { type EvictionVerdict, evictedReason, evictedStatus } from './eviction-message.ts';
export type {
  ContainerMeasures,
  DiskLayout,
  DiskLeft,
  EvictionStats,
  FilesUsage,
  Left,
  MemoryLeft,
  NeededFigures,
  NodeMeasures,
  PodMeasures,
} from './eviction-stats.ts';
export {
  type MemoryAlarm,
  type MemoryGrowth,
  type MemoryRoom,
  type WatchMemory,
  watchMemory,
} from './memory-threshold-notifier.ts';
export { type EvictionObserver, evictionMetrics } from './metrics.ts';
export { type PressureCondition, pressureConditions } from './observations.ts';
