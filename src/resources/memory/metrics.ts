import type { MetricRegistry } from '../../lib/index.ts';

/** Told what is assigned, to be counted. Never throws. */
export interface MemoryObserver {
  requested(): void;
  failed(): void;
}

/** Make one for a registry; the names are those dashboards know. */
export function memoryMetrics(registry: MetricRegistry): MemoryObserver {
  const requests = registry
    .counter({
      name: 'kubelet_memory_manager_pinning_requests_total',
      help: 'Containers that memory of certain NUMA nodes was asked for.',
    })
    .with({});
  const errors = registry
    .counter({
      name: 'kubelet_memory_manager_pinning_errors_total',
      help: 'Containers that could not get memory of certain NUMA nodes.',
    })
    .with({});
  return { requested: () => requests.inc(), failed: () => errors.inc() };
}
