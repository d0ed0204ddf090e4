import type { MetricRegistry } from '../../lib/index.ts';
import type { AlignmentCounter } from '../cpu/metrics.ts';
import type { TopologyObserver } from '../topology/topology-manager.ts';

/** Make one for a registry; the names are those dashboards know. */
export function alignmentMetrics(registry: MetricRegistry): AlignmentCounter {
  const labels = ['scope', 'boundary'] as const;
  const done = registry.counter({
    name: 'kubelet_container_aligned_compute_resources_count',
    help: 'What was allotted from one place, by whom it is for and what kind of place.',
    labels,
  });
  const failed = registry.counter({
    name: 'kubelet_container_aligned_compute_resources_failure_count',
    help: 'What could not be allotted from one place, by whom it was for and what kind of place.',
    labels,
  });
  return (scope, boundary, outcome) => (outcome === 'done' ? done : failed).with({ scope, boundary }).inc();
}

/** From a twentieth of a millisecond, each the double of the one before. */
const buckets = Array.from({ length: 15 }, (_, power) => 0.05 * 2 ** power);

/** Make one for a registry; the names are those dashboards know. */
export function topologyMetrics(registry: MetricRegistry, count: AlignmentCounter): TopologyObserver {
  const requests = registry
    .counter({
      name: 'kubelet_topology_manager_admission_requests_total',
      help: 'Pods that were looked at by the topology manager.',
    })
    .with({});
  const errors = registry
    .counter({
      name: 'kubelet_topology_manager_admission_errors_total',
      help: 'Pods that the topology manager has refused.',
    })
    .with({});
  const duration = registry
    .histogram({
      name: 'kubelet_topology_manager_admission_duration_ms',
      help: 'How long the topology manager looked at a pod, in milliseconds.',
      buckets,
    })
    .with({});
  return {
    admitted: (durationMs) => {
      requests.inc();
      duration.observe(durationMs);
    },
    refused: (durationMs) => {
      requests.inc();
      errors.inc();
      duration.observe(durationMs);
    },
    aligned: (scope, outcome) => count(scope, 'numa_node', outcome),
  };
}
