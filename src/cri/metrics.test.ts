import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelledError, KubelingError, MetricRegistry } from '../lib/index.ts';
import { criMetrics } from './metrics.ts';

const fail = (error: unknown) => assert.fail(String(error));

async function lines(registry: MetricRegistry, pattern: RegExp): Promise<readonly string[]> {
  const text = await registry.expose(new AbortController().signal);
  return text.split('\n').filter((line) => !line.startsWith('#') && pattern.test(line));
}

test('counts runtime calls, their errors and their durations by operation', async () => {
  const registry = new MetricRegistry({ onError: fail });
  const metrics = criMetrics(registry);
  metrics.called('run_podsandbox', 500, undefined);
  metrics.called('run_podsandbox', 250, new KubelingError('CRI_FAILED', 'x'));
  metrics.called('version', 1, undefined);
  assert.deepEqual(await lines(registry, /operations(_errors)?_total/), [
    'kubelet_runtime_operations_errors_total{operation_type="run_podsandbox"} 1',
    'kubelet_runtime_operations_total{operation_type="run_podsandbox"} 2',
    'kubelet_runtime_operations_total{operation_type="version"} 1',
  ]);
  assert.deepEqual(await lines(registry, /duration_seconds_(sum|count).*run_podsandbox/), [
    'kubelet_runtime_operations_duration_seconds_sum{operation_type="run_podsandbox"} 0.75',
    'kubelet_runtime_operations_duration_seconds_count{operation_type="run_podsandbox"} 2',
  ]);
});

test('the duration histogram has fourteen buckets from 5 ms, each 2.5 times larger, and +Inf', async () => {
  const registry = new MetricRegistry({ onError: fail });
  criMetrics(registry).called('version', 1, undefined);
  const buckets = await lines(registry, /duration_seconds_bucket/);
  const bounds = buckets.map((line) => Number(/le="([^"]+)"/.exec(line)?.[1]?.replace('+Inf', 'Infinity')));
  assert.equal(bounds.length, 15);
  for (const [index, bound] of bounds.slice(0, 14).entries()) {
    assert.ok(Math.abs(bound / (0.005 * 2.5 ** index) - 1) < 1e-9, String(bound));
  }
  assert.equal(bounds[14], Number.POSITIVE_INFINITY);
});

test('a cancelled call is not an error', async () => {
  const registry = new MetricRegistry({ onError: fail });
  criMetrics(registry).called('version', 1, cancelledError('the pod is gone'));
  assert.deepEqual(await lines(registry, /operations_errors_total/), []);
  assert.equal((await lines(registry, /operations_total/)).length, 1);
});
