import { exponentialBuckets, isKind, type MetricRegistry } from '../lib/index.ts';
import type { CriObserver } from './client.ts';

const labels = ['operation_type'] as const;

/**
 * Counts and times runtime calls under the Go kubelet's metric names. Cancelled calls are counted,
 * but not as errors.
 */
export function criMetrics(registry: MetricRegistry): CriObserver {
  const total = registry.counter({
    name: 'kubelet_runtime_operations_total',
    help: 'Calls to the container runtime by operation.',
    labels,
  });
  const errors = registry.counter({
    name: 'kubelet_runtime_operations_errors_total',
    help: 'Failed calls to the container runtime by operation.',
    labels,
  });
  const duration = registry.histogram({
    name: 'kubelet_runtime_operations_duration_seconds',
    help: 'Duration of calls to the container runtime by operation.',
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
