import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import type { PodStatus } from '../kinds/index.ts';
import { MetricRegistry } from '../lib/index.ts';
import { endedContainers } from './container-statuses.ts';

const { signal } = new AbortController();
const known = { ready: false, restartCount: 0, image: '', imageID: '' };
const failed: PodStatus = {
  containerStatuses: [{ ...known, name: 'web', state: { terminated: { exitCode: 3, reason: 'Error' } } }],
  initContainerStatuses: [
    { ...known, name: 'first', state: { terminated: { exitCode: 0, reason: 'Completed' } } },
  ],
};

test('each exit of a container is counted once, and another exit is counted after the container has run again', async () => {
  const registry = new MetricRegistry({ onError: assert.ifError });
  const changed = endedContainers(registry);
  const pod = aPod();
  const change = { uid: pod.metadata.uid, pod, version: 1, isFinished: false };
  const again: PodStatus = {
    ...failed,
    containerStatuses: [{ ...known, name: 'web', state: { running: {} } }],
  };
  changed({ ...change, before: undefined, after: failed });
  changed({ ...change, before: failed, after: { ...failed, phase: 'Running' } });
  changed({ ...change, before: failed, after: again });
  changed({ ...change, before: again, after: failed });
  const text = await registry.expose(signal);
  const series = 'kubelet_terminated_containers_total';
  assert.ok(text.includes(`${series}{container_type="container",exit_code="3",reason="Error"} 2\n`), text);
  const init = `${series}{container_type="init_container",exit_code="0",reason="Completed"} 1\n`;
  assert.ok(text.includes(init), text);
});

test('exits in the status that a pod had before the kubelet started are not counted', async () => {
  const registry = new MetricRegistry({ onError: assert.ifError });
  const pod = { ...aPod(), status: failed };
  const change = { uid: pod.metadata.uid, pod, version: 1, isFinished: false };
  endedContainers(registry)({ ...change, before: undefined, after: failed });
  assert.doesNotMatch(await registry.expose(signal), /^kubelet_terminated_containers_total\{/m);
});
