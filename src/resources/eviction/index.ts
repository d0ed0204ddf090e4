/** The eviction manager: what a node does when it is short of something. */
export type { DiskPart } from './disk-layout.ts';
export { type EvictionVerdict, evictedReason, evictedStatus } from './evicted-status.ts';
export {
  type EvictionDeps,
  type EvictionKill,
  EvictionManager,
  type EvictionSettings,
} from './eviction-manager.ts';
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
} from './measures.ts';
export {
  type MemoryAlarm,
  type MemoryGrowth,
  type MemoryRoom,
  type WatchMemory,
  watchMemory,
} from './memory-alarm.ts';
export { type EvictionObserver, evictionMetrics } from './metrics.ts';
export { type PressureCondition, pressureConditions } from './signals.ts';
