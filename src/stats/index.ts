/** What the node and its pods have used, as eviction, metrics-server, `kubectl top` and monitoring ask for it. */
export { type CadvisorSources, cadvisorMetrics, scrapeError } from './cadvisor-metrics.ts';
export type {
  ContainerUsage,
  DiskUsage,
  FileUsage,
  NodeFigures,
  NodeStats,
  OpenFiles,
  PodUsage,
  ProcessUsage,
  RuntimeDisk,
  StatsMachine,
  StatsWish,
  SystemPart,
  Usage,
  VolumeUsage,
} from './node-stats.ts';
export { type PodSubject, podSubjects } from './pod-subjects.ts';
export { resourceMetrics } from './resource-metrics.ts';
export { type StatsAges, StatsProvider, type StatsProviderDeps } from './stats-provider.ts';
export { ephemeralOf, type StatsPages, statsPages, summaryOf } from './summary.ts';
export { type VolumePlace, VolumeUsages } from './volume-usages.ts';
