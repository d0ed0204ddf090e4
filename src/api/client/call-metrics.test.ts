import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricRegistry } from '../../lib/index.ts';
import { callMetrics } from './call-metrics.ts';

const { signal } = new AbortController();

function createHarness() {
  const registry = new MetricRegistry({ onError: assert.ifError });
  return { registry, seen: callMetrics(registry) };
}

test('counts requests by the status of their response, and those without a response', async () => {
  const { registry, seen } = createHarness();
  const call = { verb: 'patch', method: 'PATCH', host: 'api:6443', durationMs: 30 } as const;
  seen({ ...call, status: 200 });
  seen({ ...call, status: 200 });
  seen({ ...call, status: undefined });
  const text = await registry.expose(signal);
  assert.match(text, /^rest_client_requests_total\{code="200",method="PATCH",host="api:6443"\} 2$/m);
  assert.match(text, /^rest_client_requests_total\{code="<error>",method="PATCH",host="api:6443"\} 1$/m);
  assert.match(text, /^rest_client_request_duration_seconds_count\{verb="PATCH",host="api:6443"\} 3$/m);
});

test('counts a watch as a request without a duration', async () => {
  const { registry, seen } = createHarness();
  seen({ verb: 'watch', method: 'GET', host: 'api:6443', status: 200, durationMs: 1 });
  const text = await registry.expose(signal);
  assert.match(text, /^rest_client_requests_total\{code="200",method="GET",host="api:6443"\} 1$/m);
  assert.doesNotMatch(text, /request_duration_seconds_count/);
});
