import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { anInstance, observe } from '../../test/fakes/runtime-view.ts';
import { aStatusContext } from '../../test/fakes/status-context.ts';
import type { Container, PodStatus } from '../kinds/index.ts';
import type { ObservedContainer } from '../pods/index.ts';
import { findCondition } from './conditions.ts';
import { generatePodStatus } from './generate.ts';

const rule = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } };
const watcher: Container = {
  name: 'watcher',
  image: 'x',
  restartPolicy: 'Never',
  restartPolicyRules: [rule],
};
const pod = aPod({ spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'x' }, watcher] } });
const main = anInstance({ name: 'main' });

function statusOf(containers: readonly ObservedContainer[], previous: PodStatus = {}): PodStatus {
  return generatePodStatus(pod, observe(pod, containers), aStatusContext({ previous }));
}

const told = (status: PodStatus) => findCondition(status, 'AllContainersRestarting');
const ran = statusOf([main, anInstance({ name: 'watcher' })]);
const requested = statusOf([main, anInstance({ name: 'watcher', state: 'exited', exitCode: 42 })], ran);

describe('the condition AllContainersRestarting of a pod whose containers can request a restart of all containers', () => {
  it('AllContainersRestarting is false at first and is the last condition in the list', () => {
    assert.equal(told(ran)?.status, 'False');
    assert.equal(ran.conditions?.at(-1)?.type, 'AllContainersRestarting');
    assert.equal(
      told(generatePodStatus(aPod(), observe(aPod()), aStatusContext({ previous: {} }))),
      undefined,
    );
  });

  it('AllContainersRestarting is true from the exit that requests the restart', () => {
    assert.deepEqual(
      [told(requested)?.status, told(requested)?.reason],
      ['True', 'RestartAllContainersStarted'],
    );
    assert.equal(requested.phase, 'Running');
    const other = anInstance({ name: 'watcher', state: 'exited', exitCode: 1 });
    assert.equal(told(statusOf([main, other], ran))?.status, 'False');
  });

  it('AllContainersRestarting stays true while a container created before the exit remains', () => {
    const half = statusOf([main], requested);
    assert.equal(told(half)?.status, 'True');
    assert.equal(half.phase, 'Running');
  });

  it('AllContainersRestarting becomes false when all containers are removed: each container is then waiting and counts as restarted', () => {
    const gone = statusOf([], requested);
    assert.equal(told(gone)?.status, 'False');
    assert.equal(gone.phase, 'Running');
    for (const status of gone.containerStatuses ?? []) {
      assert.equal(status.state?.waiting?.reason, 'RestartingAllContainers');
      assert.equal(status.lastState?.terminated?.exitCode, 137);
      assert.equal(status.restartCount, 1);
    }
    const again = statusOf([], gone);
    assert.deepEqual(
      again.containerStatuses?.map(({ restartCount }) => restartCount),
      [1, 1],
    );
  });

  it('the restarts of recreated containers are counted', () => {
    const anew = statusOf([main, anInstance({ name: 'watcher' })], statusOf([], requested));
    assert.deepEqual(
      anew.containerStatuses?.map(({ restartCount, lastState }) => [
        restartCount,
        lastState?.terminated?.reason,
      ]),
      [
        [1, 'RestartingAllContainers'],
        [1, 'RestartingAllContainers'],
      ],
    );
  });

  it('AllContainersRestarting is dropped when the pod has terminated', () => {
    const ended = ['main', 'watcher'].map((name) => anInstance({ name, state: 'exited' }));
    assert.equal(told(statusOf(ended, ran))?.reason, 'PodCompleted');
  });
});
