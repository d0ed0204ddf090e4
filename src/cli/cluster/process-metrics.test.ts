import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FeatureGates } from '../../config/index.ts';
import { MetricRegistry, realClock } from '../../lib/index.ts';
import { exposeProcess } from './process-metrics.ts';

const { signal } = new AbortController();

test('exports node name, version, feature gates and process usage until disposed', async () => {
  const metrics = new MetricRegistry({ onError: assert.ifError });
  const gates = new FeatureGates({});
  const exposed = exposeProcess({ metrics, clock: realClock(), gates, nodeName: 'node-a' });
  const text = await metrics.expose(signal);
  assert.match(text, /^kubelet_node_name\{node="node-a"\} 1$/m);
  assert.match(text, /^kubelet_cgroup_version [12]$/m);
  assert.match(text, /^kubernetes_build_info\{major="1",minor="\d+",.*\} 1$/m);
  assert.match(text, /^kubernetes_feature_enabled\{name="NodeSwap",stage=""\} 1$/m);
  assert.match(text, /^process_open_fds [1-9]/m);
  assert.match(text, /^nodejs_heap_size_used_bytes [1-9]/m);
  assert.match(text, /^nodejs_version_info\{version="v\d+\.\d+\.\d+"\} 1$/m);
  exposed[Symbol.dispose]();
  assert.doesNotMatch(await metrics.expose(signal), /kubelet_node_name/);
});
