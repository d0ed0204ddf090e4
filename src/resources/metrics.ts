import type { MetricRegistry } from '../lib/index.ts';

export type CgroupOperation = 'create' | 'update' | 'destroy';

/** Told how long work on cgroups took, whether or not it succeeded. Never throws. */
export type CgroupObserver = (operation: CgroupOperation, durationMs: number) => void;

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Make one for a registry; the name is the one dashboards know. */
export function cgroupMetrics(registry: MetricRegistry): CgroupObserver {
  const duration = registry.histogram({
    name: 'kubelet_cgroup_manager_duration_seconds',
    help: 'How long work on cgroups took, by kind.',
    labels: ['operation_type'],
    buckets,
  });
  return (operation, durationMs) => duration.with({ operation_type: operation }).observe(durationMs / 1_000);
}
