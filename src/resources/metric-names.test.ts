import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricRegistry } from '../lib/index.ts';
import { resizeMetrics } from './allocation/index.ts';
import { CpuTopology } from './cpu/cpu-topology.ts';
import { evictionMetrics } from './eviction/index.ts';
import { alignmentMetrics, cpuMetrics, memoryMetrics, topologyMetrics } from './exclusive/metrics.ts';
import { podResourcesMetrics } from './pod-resources/pod-resources-lister.ts';

const { signal } = new AbortController();

function registry(): MetricRegistry {
  return new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
}

async function samplesOf(metrics: MetricRegistry): Promise<readonly string[]> {
  const lines = (await metrics.expose(signal)).split('\n');
  return lines.filter((line) => line.startsWith('kubelet_'));
}

test('eviction metrics have the same names as in the Go kubelet', async () => {
  const metrics = registry();
  const observer = evictionMetrics(metrics);
  observer.evicted('memory.available');
  observer.evicted('emptydirfs.limit');
  observer.statsAge('memory.available', 0.7);
  const samples = await samplesOf(metrics);
  for (const line of [
    'kubelet_evictions{eviction_signal="memory.available"} 1',
    'kubelet_evictions{eviction_signal="emptydirfs.limit"} 1',
    'kubelet_eviction_stats_age_seconds_bucket{eviction_signal="memory.available",le="0.5"} 0',
    'kubelet_eviction_stats_age_seconds_bucket{eviction_signal="memory.available",le="1"} 1',
    'kubelet_eviction_stats_age_seconds_sum{eviction_signal="memory.available"} 0.7',
  ])
    assert.ok(samples.includes(line), `${line} is not among\n${samples.join('\n')}`);
});

test('resize metrics have the same names as in the Go kubelet', async () => {
  const metrics = registry();
  const observer = resizeMetrics(metrics, () => ({ pending: new Map([['Deferred', 2]]), inProgress: 3 }));
  observer.requested({ resource: 'cpu', requirement: 'limits', operation: 'increase' });
  observer.infeasible('swap_limitation');
  observer.acceptedAfterWaiting('pods_removed');
  assert.deepEqual((await samplesOf(metrics)).toSorted(), [
    'kubelet_container_requested_resizes_total{resource="cpu",requirement="limits",operation="increase"} 1',
    'kubelet_pod_deferred_accepted_resizes_total{retry_trigger="pods_removed"} 1',
    'kubelet_pod_in_progress_resizes 3',
    'kubelet_pod_infeasible_resizes_total{reason_detail="swap_limitation"} 1',
    'kubelet_pod_pending_resizes{reason="deferred"} 2',
    'kubelet_pod_pending_resizes{reason="infeasible"} 0',
  ]);
});

test('CPU, memory, topology and device metrics have the same names as in the Go kubelet', async () => {
  const metrics = registry();
  const count = alignmentMetrics(metrics);
  const place = (cpu: number) => ({ numaNode: cpu % 2, socket: 0, core: cpu, uncoreCache: 0 });
  const groups = new CpuTopology({ cpus: new Map([0, 1, 2, 3].map((cpu) => [cpu, place(cpu)])) });
  const cpu = cpuMetrics(metrics, groups, 'whole-only', count);
  cpu.requested();
  cpu.failed();
  cpu.allocated(new Set([1]));
  cpu.changed(2, new Set([1]));
  const memory = memoryMetrics(metrics);
  memory.requested();
  memory.failed();
  const topology = topologyMetrics(metrics, count);
  topology.admitted(0.06);
  topology.refused(0.06);
  topology.aligned('pod', 'done');
  const samples = await samplesOf(metrics);
  for (const line of [
    'kubelet_cpu_manager_pinning_requests_total 1',
    'kubelet_cpu_manager_pinning_errors_total 1',
    'kubelet_cpu_manager_shared_pool_size_millicores 2000',
    'kubelet_cpu_manager_exclusive_cpu_allocation_count 1',
    'kubelet_cpu_manager_allocation_per_numa{numa_node="0"} 0',
    'kubelet_cpu_manager_allocation_per_numa{numa_node="1"} 1',
    'kubelet_memory_manager_pinning_requests_total 1',
    'kubelet_memory_manager_pinning_errors_total 1',
    'kubelet_topology_manager_admission_requests_total 2',
    'kubelet_topology_manager_admission_errors_total 1',
    'kubelet_topology_manager_admission_duration_ms_bucket{le="0.05"} 0',
    'kubelet_topology_manager_admission_duration_ms_bucket{le="0.1"} 2',
    'kubelet_container_aligned_compute_resources_count{scope="container",boundary="physical_cpu"} 1',
    'kubelet_container_aligned_compute_resources_count{scope="container",boundary="uncore_cache"} 1',
    'kubelet_container_aligned_compute_resources_count{scope="pod",boundary="numa_node"} 1',
    'kubelet_container_aligned_compute_resources_failure_count{scope="container",boundary="physical_cpu"} 1',
  ])
    assert.ok(samples.includes(line), `${line} is not among\n${samples.join('\n')}`);
});

test('PodResources API metrics have the same names as in the Go kubelet', async () => {
  const metrics = registry();
  const observer = podResourcesMetrics(metrics);
  for (const method of ['list', 'get', 'get_allocatable'] as const) {
    observer.asked('v1', method);
    observer.failed('v1', method);
  }
  const of = (name: string) => `kubelet_pod_resources_endpoint_${name}{server_api_version="v1"}`;
  const each = ['list', 'get', 'get_allocatable'].flatMap((method) => [
    `${of(`requests_${method}`)} 1`,
    `${of(`errors_${method}`)} 1`,
  ]);
  assert.deepEqual(new Set(await samplesOf(metrics)), new Set([`${of('requests_total')} 3`, ...each]));
});
