/**
 * Resource usage of the node and its pods for eviction, metrics-server, `kubectl top` and
 * monitoring.
 */
export { type CadvisorSources, cadvisorMetrics, scrapeError } from './cadvisor-metrics.ts';
export type {
  ContainerUsage,
  DiskUsage,
  FileUsage,
  NodeStats,
  NodeUsage,
  OpenFiles,
  PodUsage,
  ProcessUsage,
  RuntimeDisk,
  StatsMachine,
  StatsScope,
  SystemPart,
  Usage,
  VolumeUsage,
} from './node-stats.ts';
export { type PodSubject, podSubjects } from './pod-subjects.ts';
export { resourceMetrics } from './resource-metrics.ts';
export { type StatsAges, StatsProvider, type StatsProviderDeps } from './stats-provider.ts';
export { createStatsEndpoints, ephemeralOf, type StatsEndpoints, summaryOf } from './summary.ts';
export { type MeasuredDirectory, VolumeUsages } from './volume-usages.ts';
