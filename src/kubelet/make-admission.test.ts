import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { settings } from '../../test/simulation/kubelet-life.ts';
import { collectLogs, MetricRegistry, VirtualClock } from '../lib/index.ts';
import { makeAdmission } from './make-admission.ts';

/** A node of a cluster whose API nobody has reached yet. */
function admission() {
  const clock = new VirtualClock();
  const deps = {
    clock,
    logger: collectLogs(clock).logger,
    metrics: new MetricRegistry({ onError: (error) => assert.fail(String(error)) }),
    cluster: { node: () => undefined, fetchNode: () => Promise.reject(new Error('nobody answers')) },
  };
  const parts = {
    workers: () => ({ queries: { isPodTerminationRequested: () => false } }),
    standing: () => 'new',
    active: () => [],
    abilities: () => ({ strictGroups: true }),
    isShuttingDown: () => false,
    wasAdmitted: () => false,
    pressures: () => [],
  };
  const hugePages = new Map([['2MB', 64 * 2 ** 20]]);
  const own = { ...settings, capacity: { ...settings.capacity, hugePages } };
  return makeAdmission(own, deps as never, parts as never);
}

function asking(requests: Readonly<Record<string, string>>) {
  const containers = [{ name: 'main', image: 'etcd', resources: { requests } }];
  return aPod({
    metadata: { annotations: { 'kubernetes.io/config.source': 'file' } },
    spec: { containers },
  });
}

function judged(requests: Readonly<Record<string, string>>): string {
  return admission().judge(asking(requests), () => [], 'new').kind;
}

test('pods that are to serve the API are admitted while it does not tell of the node', () => {
  assert.equal(judged({ cpu: '100m', memory: '100Mi', 'ephemeral-storage': '100Mi' }), 'admit');
  assert.equal(judged({ cpu: '100m', 'hugepages-2Mi': '64Mi' }), 'admit');
  assert.equal(judged({ cpu: '100m', 'hugepages-2Mi': '128Mi' }), 'refuse');
  assert.equal(judged({ cpu: '100' }), 'refuse');
});
