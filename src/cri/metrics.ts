import { exponentialBuckets, isKind, type MetricRegistry } from '../lib/index.ts';
import type { CriObserver } from './client.ts';

const labels = ['operation_type'] as const;

/**
 * Counts and times the runtime's calls under the names dashboards know. Make one for a registry. A call that was given
 * up on purpose is counted, but not as an error: nothing went wrong.
 */
export function criMetrics(registry: MetricRegistry): CriObserver {
  const total = registry.counter({
    name: 'kubelet_runtime_operations_total',
    help: 'Calls to the container runtime by kind.',
    labels,
  });
  const errors = registry.counter({
    name: 'kubelet_runtime_operations_errors_total',
    help: 'Calls to the container runtime that failed, by kind.',
    labels,
  });
  const duration = registry.histogram({
    name: 'kubelet_runtime_operations_duration_seconds',
    help: 'How long calls to the container runtime took, by kind.',
    labels,
    buckets: exponentialBuckets(0.005, 2.5, 14),
  });
  return {
    called(operation, durationMs, error) {
      const series = { operation_type: operation };
      total.with(series).inc();
      duration.with(series).observe(durationMs / 1_000);
      if (error !== undefined && !isKind(error, 'Cancelled')) errors.with(series).inc();
    },
  };
}
