/** What the node and its pods have used, as metrics-server, `kubectl top` and monitoring ask for it. */
export { type CadvisorSources, cadvisorMetrics, scrapeError } from './cadvisor-metrics.ts';
export type { DiskUsage, FileUsage, NodeStats, StatsWish, VolumeUsage } from './node-stats.ts';
export { resourceMetrics } from './resource-metrics.ts';
export { StatsCollector, type StatsSources } from './stats-collector.ts';
export { summaryOf } from './summary.ts';
export { type VolumePlace, VolumeUsages } from './volume-usages.ts';
