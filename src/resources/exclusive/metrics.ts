import type { MetricRegistry } from '../../lib/index.ts';
import type { CpuSet } from '../cpu/cpu-set.ts';
import type { CpuTopology } from '../cpu/cpu-topology.ts';
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

/** Told what is assigned, to be counted. Never throws. */
export interface CpuObserver {
  requested(): void;
  failed(): void;
  allocated(cpus: CpuSet): void;
  changed(sharedCpus: number, exclusive: CpuSet): void;
}

/** Make one for a registry; the names are those dashboards know. */
export function cpuMetrics(
  registry: MetricRegistry,
  groups: CpuTopology,
  cores: 'whole-only' | 'any',
  count: AlignmentCounter,
): CpuObserver {
  const requests = registry
    .counter({
      name: 'kubelet_cpu_manager_pinning_requests_total',
      help: 'Containers that processors of their own were asked for.',
    })
    .with({});
  const errors = registry
    .counter({
      name: 'kubelet_cpu_manager_pinning_errors_total',
      help: 'Containers that could not get processors of their own.',
    })
    .with({});
  const shared = registry
    .gauge({
      name: 'kubelet_cpu_manager_shared_pool_size_millicores',
      help: 'What containers without processors of their own share.',
    })
    .with({});
  const exclusive = registry
    .gauge({
      name: 'kubelet_cpu_manager_exclusive_cpu_allocation_count',
      help: 'Processors that belong to one container alone.',
    })
    .with({});
  const perNode = registry.gauge({
    name: 'kubelet_cpu_manager_allocation_per_numa',
    help: 'Processors that belong to one container alone, by NUMA node.',
    labels: ['numa_node'],
  });
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
    changed: (sharedCpus, cpus) => {
      shared.set(sharedCpus * 1_000);
      exclusive.set(cpus.size);
      for (const id of groups.ids('numaNode'))
        perNode.with({ numa_node: `${id}` }).set(groups.cpusIn('numaNode', id).intersection(cpus).size);
    },
  };
}

export type AlignmentCounter = (
  scope: 'container' | 'pod',
  boundary: 'numa_node' | 'physical_cpu' | 'uncore_cache',
  outcome: 'done' | 'failed',
) => void;

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
