import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { MetricRegistry } from '../lib/index.ts';
import { containerTypeOf, startMetrics } from './metrics.ts';

const { signal } = new AbortController();

test("counts starts, failures and pulls with the Go kubelet's metric names", async () => {
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const observer = startMetrics(registry);
  observer.sandboxStarting();
  observer.sandboxFailed();
  observer.runPodSandbox('', 20, 'created');
  observer.runPodSandbox('gvisor', 20, 'failed');
  observer.containerStarting('init_container');
  observer.containerFailed('init_container', 'ErrImagePull');
  for (const bytes of [undefined, 0n, 1n, 10n << 20n, (10n << 20n) + 1n, 101n << 30n])
    observer.imagePulled(1_500, bytes);
  const text = await registry.expose(signal);
  const values = text.split('\n').filter((line) => /^kubelet/.test(line) && !/_bucket|_sum/.test(line));
  assert.deepEqual(values, [
    'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="N/A"} 2',
    'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="0-10MB"} 2',
    'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="10MB-100MB"} 1',
    'kubelet_image_pull_duration_seconds_count{image_size_in_bytes="GT100GB"} 1',
    'kubelet_run_podsandbox_duration_seconds_count{runtime_handler=""} 1',
    'kubelet_run_podsandbox_duration_seconds_count{runtime_handler="gvisor"} 1',
    'kubelet_run_podsandbox_errors_total{runtime_handler="gvisor"} 1',
    'kubelet_started_containers_errors_total{container_type="init_container",code="ErrImagePull"} 1',
    'kubelet_started_containers_total{container_type="init_container"} 1',
    'kubelet_started_pods_errors_total 1',
    'kubelet_started_pods_total 1',
  ]);
});

test("counts a container start by the container's type in the pod", () => {
  const pod = aPod({
    spec: { initContainers: [{ name: 'init' }], ephemeralContainers: [{ name: 'debug' }] },
  });
  assert.deepEqual(
    ['main', 'init', 'debug'].map((name) => containerTypeOf(pod, name)),
    ['container', 'init_container', 'ephemeral_container'],
  );
});
