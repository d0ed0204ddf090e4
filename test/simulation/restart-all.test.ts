import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodSpec } from '../../src/kinds/index.ts';
import { apiPod } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';
import { images } from './sketch.ts';

function container(name: string, behaviour: object, more: object = {}) {
  const command = ['app', JSON.stringify(behaviour)];
  return { name, image: images.present, imagePullPolicy: 'IfNotPresent', command, ...more };
}

/**
 * The container named watcher exits with 42 after a while; its restart rule then restarts all
 * containers.
 */
const spec: Partial<PodSpec> = {
  initContainers: [container('prepare', { runMs: 50 })],
  containers: [
    container('app', {}),
    container(
      'watcher',
      { runMs: 5_000, exitCode: 42 },
      {
        restartPolicy: 'Never',
        restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }],
      },
    ),
  ],
};

it('an exit that restarts all containers restarts them in the same sandbox, init containers first', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected' } });
  await node.api(apiPod('all', 'uid-all', { restartPolicy: 'Never', spec }));
  const started = (name: string) =>
    node.of('uid-all', 'container-started').filter((entry) => JSON.stringify(entry).includes(name)).length;
  await node.until('everything runs', () => started('watcher') === 1 && started('app') === 1);
  await node.until(
    'all containers run again',
    () => started('watcher') === 2 && started('app') === 2,
    30_000,
  );
  assert.equal(started('prepare'), 2);
  assert.equal(node.of('uid-all', 'sandbox-started').length, 1);
  await node.pass(1_000);
  const pod = node.world.life?.kubelet.endpoints.podsWithStatus()[0];
  assert.equal(pod?.status.phase, 'Running');
  assert.deepEqual(
    pod?.status.containerStatuses?.map(({ name, restartCount }) => [name, restartCount]),
    [
      ['app', 1],
      ['watcher', 1],
    ],
  );
});
