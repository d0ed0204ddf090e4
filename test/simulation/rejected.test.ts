import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodUid } from '../../src/pods/index.ts';
import { apiPod } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';

it('the status of a rejected pod contains the reason, its QoS class and a false Ready condition', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected', maxPods: 1 } });
  const at = (minute: number) => ({ metadata: { creationTimestamp: `2025-12-31T01:0${minute}:00Z` } });
  await node.api(apiPod('first', 'uid-first', at(1)), apiPod('second', 'uid-second', at(2)));
  await node.runs('uid-first');
  const status = node.kubelet.state.statuses.getPodStatus('uid-second' as PodUid);
  assert.deepEqual(
    [status?.phase, status?.reason, status?.message, status?.qosClass],
    [
      'Failed',
      'OutOfpods',
      "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1",
      'BestEffort',
    ],
  );
  assert.notEqual(status?.startTime, undefined);
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  assert.deepEqual([ready?.status, ready?.reason], ['False', 'PodFailed']);
});
