import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricRegistry } from '../../../lib/index.ts';
import { pluginMetrics } from './plugin-metrics.ts';

const { signal } = new AbortController();

test('runs of plugins are counted, and their configuration is told by its fingerprint', async () => {
  const registry = new MetricRegistry({ onError: assert.ifError });
  const observer = pluginMetrics(registry, 'sha256:abc');
  observer.ran('ecr', 20, 'worked');
  observer.ran('ecr', 20, 'failed');
  const text = await registry.expose(signal);
  assert.match(text, /^kubelet_credential_provider_config_info\{hash="sha256:abc"\} 1$/m);
  assert.match(text, /^kubelet_credential_provider_plugin_duration_count\{plugin_name="ecr"\} 2$/m);
  assert.match(text, /^kubelet_credential_provider_plugin_errors_total\{plugin_name="ecr"\} 1$/m);
});
