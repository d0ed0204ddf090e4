import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anInstance, anObservedPod } from '../../test/fakes/observed.ts';
import { aPod } from '../../test/fakes/pods.ts';
import type { Container, ContainerRestartRule } from '../kinds/index.ts';
import {
  effectiveRestartPolicy,
  restartsAfterExit,
  shouldContainerStart,
  shouldRestartAllContainers,
} from './restart-decision.ts';

const main: Container = { name: 'main', image: 'x' };

const policies: readonly [
  pod: string | undefined,
  container: string | undefined,
  exitCode: number,
  boolean,
][] = [
  ['Always', undefined, 0, true],
  ['Always', undefined, 1, true],
  ['OnFailure', undefined, 0, false],
  ['OnFailure', undefined, 1, true],
  ['Never', undefined, 0, false],
  ['Never', undefined, 1, false],
  [undefined, undefined, 0, true],
  ['Always', 'Never', 1, false],
  ['Never', 'Always', 0, true],
  ['Always', 'OnFailure', 0, false],
  ['Never', 'OnFailure', 7, true],
];
for (const [pod, container, exitCode, expected] of policies) {
  test(`exit ${exitCode} under pod policy ${pod} and container policy ${container}: restart is ${expected}`, () => {
    const restartPolicy = pod;
    assert.equal(
      restartsAfterExit(aPod({ spec: { restartPolicy } }), { ...main, restartPolicy: container }, exitCode),
      expected,
    );
  });
}

const rule = (operator: string, values: number[], action = 'Restart'): ContainerRestartRule => ({
  action,
  exitCodes: { operator, values },
});
const ruled: readonly [string, readonly ContainerRestartRule[], number, boolean][] = [
  ['a listed code restarts', [rule('In', [42])], 42, true],
  ['another code does not', [rule('In', [42])], 41, false],
  ['NotIn restarts what is not listed', [rule('NotIn', [42])], 41, true],
  ['NotIn leaves what is listed', [rule('NotIn', [42])], 42, false],
  ['restarting all restarts this one', [rule('In', [3], 'RestartAllContainers')], 3, true],
  ['the first matching rule decides', [rule('In', [1], 'Unheard'), rule('In', [1])], 1, false],
  ['an unknown operator matches nothing', [rule('Is', [1])], 1, false],
  ['a rule without codes matches nothing', [{ action: 'Restart' }], 1, false],
];
for (const [what, restartPolicyRules, exitCode, expected] of ruled) {
  test(`applies container restart rules: ${what}`, () => {
    const pod = aPod({ spec: { restartPolicy: 'Always' } });
    const container = { ...main, restartPolicy: 'Never', restartPolicyRules };
    assert.equal(restartsAfterExit(pod, container, exitCode), expected);
  });
}

test('ignores the restart rules of a container without its own restart policy', () => {
  const container = { ...main, restartPolicyRules: [rule('In', [1])] };
  assert.equal(restartsAfterExit(aPod({ spec: { restartPolicy: 'Never' } }), container, 1), false);
});

test('starts a container that has no instance, or whose newest instance is created or in an unknown state', () => {
  const pod = aPod({ spec: { restartPolicy: 'Never' } });
  assert.equal(shouldContainerStart(pod, main, undefined), true);
  assert.equal(shouldContainerStart(pod, main, anInstance(main, { state: 'created' })), true);
  assert.equal(shouldContainerStart(pod, main, anInstance(main, { state: 'unknown' })), true);
  assert.equal(shouldContainerStart(pod, main, anInstance(main)), false);
});

test('starts no container in a pod that is being deleted', () => {
  const pod = aPod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
  assert.equal(shouldContainerStart(pod, main, undefined), false);
  assert.equal(shouldContainerStart(pod, main, anInstance(main, { state: 'exited', exitCode: 1 })), false);
});

test('ignores an unknown restart policy', () => {
  const pod = aPod({ spec: { restartPolicy: 'OnFailure' } });
  assert.equal(effectiveRestartPolicy(pod, { ...main, restartPolicy: 'Sometimes' }), 'OnFailure');
});

test('restarts all containers when the newest instance of any container exited with a code for which a rule has the action RestartAllContainers', () => {
  const container = {
    ...main,
    restartPolicy: 'Never',
    restartPolicyRules: [rule('In', [9], 'RestartAllContainers')],
  };
  const pod = aPod({ spec: { containers: [container, { name: 'other', image: 'x' }] } });
  const exited = (exitCode: number) => anInstance(container, { state: 'exited', exitCode });
  assert.equal(shouldRestartAllContainers(pod, anObservedPod({ containers: [exited(9)] })), true);
  assert.equal(shouldRestartAllContainers(pod, anObservedPod({ containers: [exited(1), exited(9)] })), false);
  assert.equal(shouldRestartAllContainers(pod, anObservedPod()), false);
});
