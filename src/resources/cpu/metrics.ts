import type { MetricRegistry } from '../../lib/index.ts';
import type { CpuGroups } from './cpu-groups.ts';
import type { CpuSet } from './cpu-set.ts';

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
  groups: CpuGroups,
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
