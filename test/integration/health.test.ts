import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: busyboxImageName, command: ['sleep', '1000'] }],
  },
};

describe('health and metrics endpoints of a private node', { timeout: 180_000 }, () => {
  let node: KubelingNode;

  before(async () => {
    node = await KubelingNode.open();
  });

  after(async () => {
    assert.deepEqual(await node.leave(), []);
  });

  const readyz = (expected: RegExp) =>
    eventually(`readyz to return ${expected}`, async () => {
      const text = await node.get('/readyz?verbose');
      return expected.test(text) ? text : undefined;
    });

  it('the node reports ready once its pod sources were read', async () => {
    const text = await readyz(/readyz check passed/);
    for (const name of ['ping', 'sources', 'runtime', 'network', 'pleg', 'background', 'syncloop'])
      assert.match(text, new RegExp(`^\\[\\+\\]${name} ok$`, 'm'));
    assert.equal(await node.get('/healthz'), 'ok');
    assert.equal(await node.get('/livez/syncloop'), 'ok');
    assert.equal(await node.get('/readyz/pleg'), 'ok');
  });

  it('the node counts its pods in the metrics', async () => {
    await node.put('web.yaml', pod);
    await node.running('web');
    // The kubelet also creates a mirror pod of the static pod in the node's own API, whose watch
    // delivers it to the kubelet.
    const counted = [
      '\nkubelet_working_pods{lifecycle="sync",config="desired",static="true"} 1\n',
      '\nkubelet_mirror_pods 1\n',
    ];
    const metrics = await eventually('housekeeping to have counted the pod', async () => {
      const text = await node.get('/metrics');
      return counted.every((line) => text.includes(line)) ? text : undefined;
    });
    assert.equal(metrics.match(/^kubelet_working_pods\{/gm)?.length, 15);
    for (const line of [
      'kubelet_desired_pods{static="true"} 1',
      'kubelet_active_pods{static="true"} 1',
      'kubelet_orphaned_runtime_pods_total 0',
      'kubelet_running_pods 1',
      'kubelet_running_containers{container_state="running"} 1',
      'kubelet_started_pods_total 1',
      'kubelet_started_containers_total{container_type="container"} 1',
      'kubelet_pod_start_duration_seconds_count 1',
      'kubelet_runtime_operations_total{operation_type="run_podsandbox"}',
      'kubeling_pod_workers_stuck 0',
    ])
      assert.ok(metrics.includes(`\n${line}`), `${line} is missing`);
  });

  it('the node reports live but not ready while the runtime is unresponsive or stopped', async () => {
    const { pid } = JSON.parse(await readFile(join(node.dataDir, 'containerd', 'containerd.pid'), 'utf8'));
    process.kill(pid, 'SIGSTOP');
    try {
      await readyz(/^\[-\]runtime failed: container runtime has not answered for/m);
      assert.equal(await node.get('/healthz'), 'ok');
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await readyz(/readyz check passed/);
    process.kill(pid, 'SIGKILL');
    await readyz(/^\[-\]runtime failed: container runtime does not answer: /m);
    await readyz(/readyz check passed/);
    const story = await node.command('explain');
    assert.match(story, /Normal +Starting: Starting kubelet\.\n/);
    assert.match(
      story,
      /The container runtime does not answer: .*\n(.*\n)*?.*The container runtime answers again\n/,
    );
    await node.take('web.yaml');
  });
});
