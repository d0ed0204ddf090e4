import type { MetricRegistry } from '../../lib/index.ts';

/** Told what the writer does, to be counted. Never throws. */
export interface StatusWriterObserver {
  /** The API has a status, so long after it was made. */
  synced(ms: number): void;
}

/** Make one for a registry; the name is the one dashboards know. */
export function statusWriterMetrics(registry: MetricRegistry): StatusWriterObserver {
  const duration = registry
    .histogram({
      name: 'kubelet_pod_status_sync_duration_seconds',
      help: 'Time from a change of a pod status to the API having it.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
    })
    .with({});
  return { synced: (ms) => duration.observe(ms / 1_000) };
}
