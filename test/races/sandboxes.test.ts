import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scriptedFaults } from '../simulator/index.ts';
import { manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

it('kill while RunPodSandbox is under way: no sandbox is left, however the runtime completes the call', async () => {
  for (const fault of [
    { kind: 'delay', ms: 2_000 },
    { kind: 'delay', ms: 9_000 },
    { kind: 'lost-reply', code: 'none' },
    { kind: 'late-effect', ms: 6_000, code: 'UNAVAILABLE' },
  ] as const) {
    await using node = await RaceNode.start();
    node.world.setFaults(
      scriptedFaults({ calls: [{ method: 'runPodSandbox', fault, times: 1 }] }),
      `sandboxes: ${fault.kind}`,
    );
    node.write('web', manifest('web'));
    await node.until('a sandbox is asked for', () =>
      node.calls.some(({ method }) => method === 'runPodSandbox'),
    );
    const uid = await node.uidOf('web');
    await node.pass(300);
    node.remove('web');
    await node.until('the pod is over', () => !node.kubelet.control.workers.has(uid), 30_000);
    await node.pass(90_000);
    const { sandboxes, containers, names, addresses } = node.world.runtime.held();
    assert.deepEqual([sandboxes, containers, names, addresses], [0, 0, 0, 0], fault.kind);
    assert.deepEqual(node.of(uid, 'container-started'), []);
  }
});

it('the status of a pod has its IP and PodReadyToStartContainers before the first image is pulled', async () => {
  await using node = await RaceNode.start();
  const slow = { kind: 'delay', ms: 20_000 } as const;
  node.world.setFaults(scriptedFaults({ calls: [{ method: 'imageStatus', fault: slow }] }), 'slow images');
  node.write('web', manifest('web'));
  const uid = await node.uidOf('web');
  await node.until('it has a sandbox', () => node.of(uid, 'sandbox-started').length > 0);
  await node.pass(1_000);
  const status = node.kubelet.state.statuses.getPodStatus(uid);
  const ready = status?.conditions?.find(({ type }) => type === 'PodReadyToStartContainers');
  assert.equal(ready?.status, 'True');
  assert.match(status?.podIP ?? '', /^\d+\.\d+\.\d+\.\d+$/);
  assert.deepEqual([status?.phase, node.running(uid)], ['Pending', []]);
});
