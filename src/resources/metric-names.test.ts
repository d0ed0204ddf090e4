import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricRegistry } from '../lib/index.ts';
import { resizeMetrics } from './allocation/index.ts';
import { evictionMetrics } from './eviction/index.ts';

const { signal } = new AbortController();

function registry(): MetricRegistry {
  return new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
}

async function samplesOf(metrics: MetricRegistry): Promise<readonly string[]> {
  const lines = (await metrics.expose(signal)).split('\n');
  return lines.filter((line) => line.startsWith('kubelet_'));
}

test('evictions are counted by the names dashboards know', async () => {
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

test('resizes are counted by the names dashboards know', async () => {
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
