import type { MetricRegistry } from '../../lib/index.ts';
import type { CpuSet } from '../cpu/cpu-set.ts';
import type { CpuTopology } from '../cpu/cpu-topology.ts';
import type { TopologyObserver } from '../topology/topology-manager.ts';

/** Registers the metrics of alignment; call once per registry. */
export function alignmentMetrics(registry: MetricRegistry): AlignmentCounter {
  const labels = ['scope', 'boundary'] as const;
  const done = registry.counter({
    name: 'kubelet_container_aligned_compute_resources_count',
    help: 'Allocations aligned to one boundary, by scope and boundary.',
    labels,
  });
  const failed = registry.counter({
    name: 'kubelet_container_aligned_compute_resources_failure_count',
    help: 'Allocations that could not be aligned to one boundary, by scope and boundary.',
    labels,
  });
  return (scope, boundary, outcome) => (outcome === 'done' ? done : failed).with({ scope, boundary }).inc();
}

/** The histogram buckets, from 0.05 ms, doubling. */
const buckets = Array.from({ length: 15 }, (_, power) => 0.05 * 2 ** power);

/** Registers the metrics of topology decisions; call once per registry. */
export function topologyMetrics(registry: MetricRegistry, count: AlignmentCounter): TopologyObserver {
  const requests = registry
    .counter({
      name: 'kubelet_topology_manager_admission_requests_total',
      help: 'Pods evaluated by the topology manager.',
    })
    .with({});
  const errors = registry
    .counter({
      name: 'kubelet_topology_manager_admission_errors_total',
      help: 'Pods rejected by the topology manager.',
    })
    .with({});
  const duration = registry
    .histogram({
      name: 'kubelet_topology_manager_admission_duration_ms',
      help: "Duration of the topology manager's evaluation of a pod, in milliseconds.",
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

/** Observes CPU assignments for metrics. Never throws. */
export interface CpuObserver {
  requested(): void;
  failed(): void;
  allocated(cpus: CpuSet): void;
  changed(sharedCpus: number, exclusive: CpuSet): void;
}

/** Registers the metrics of exclusive CPUs; call once per registry. */
export function cpuMetrics(
  registry: MetricRegistry,
  groups: CpuTopology,
  cores: 'whole-only' | 'any',
  count: AlignmentCounter,
): CpuObserver {
  const requests = registry
    .counter({
      name: 'kubelet_cpu_manager_pinning_requests_total',
      help: 'Requests for exclusive CPUs.',
    })
    .with({});
  const errors = registry
    .counter({
      name: 'kubelet_cpu_manager_pinning_errors_total',
      help: 'Failed requests for exclusive CPUs.',
    })
    .with({});
  return {
    requested: () => requests.inc(),
    failed: () => {
      errors.inc();
      if (cores === 'whole-only') count('container', 'physical_cpu', 'failed');
    },
    allocated: (cpus) => {
      if (cores === 'whole-only') count('container', 'physical_cpu', 'done');
      if (groups.idsWith('uncoreCache', cpus).length === 1) count('container', 'uncore_cache', 'done');
    },
    changed: cpuPoolGauges(registry, groups),
  };
}

/** Registers the gauges of the shared and the exclusive CPUs, and returns how to set them. */
function cpuPoolGauges(registry: MetricRegistry, groups: CpuTopology): CpuObserver['changed'] {
  const shared = registry
    .gauge({
      name: 'kubelet_cpu_manager_shared_pool_size_millicores',
      help: 'Size of the shared CPU pool.',
    })
    .with({});
  const exclusive = registry
    .gauge({
      name: 'kubelet_cpu_manager_exclusive_cpu_allocation_count',
      help: 'Exclusively assigned CPUs.',
    })
    .with({});
  const perNode = registry.gauge({
    name: 'kubelet_cpu_manager_allocation_per_numa',
    help: 'Exclusively assigned CPUs by NUMA node.',
    labels: ['numa_node'],
  });
  return (sharedCpus, cpus) => {
    shared.set(sharedCpus * 1_000);
    exclusive.set(cpus.size);
    for (const id of groups.ids('numaNode'))
      perNode.with({ numa_node: `${id}` }).set(groups.cpusIn('numaNode', id).intersection(cpus).size);
  };
}

export type AlignmentCounter = (
  scope: 'container' | 'pod',
  boundary: 'numa_node' | 'physical_cpu' | 'uncore_cache',
  outcome: 'done' | 'failed',
) => void;

/** Observes memory assignments for metrics. Never throws. */
export interface MemoryObserver {
  requested(): void;
  failed(): void;
}

/** Registers the metrics of exclusive memory; call once per registry. */
export function memoryMetrics(registry: MetricRegistry): MemoryObserver {
  const requests = registry
    .counter({
      name: 'kubelet_memory_manager_pinning_requests_total',
      help: 'Requests for memory of specific NUMA nodes.',
    })
    .with({});
  const errors = registry
    .counter({
      name: 'kubelet_memory_manager_pinning_errors_total',
      help: 'Failed requests for memory of specific NUMA nodes.',
    })
    .with({});
  return { requested: () => requests.inc(), failed: () => errors.inc() };
}
