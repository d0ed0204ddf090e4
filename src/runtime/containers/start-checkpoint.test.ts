import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anInstance, anObservedPod } from '../../../test/fakes/observed.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { isOnlyStart, withInterruptedStart } from './start-checkpoint.ts';

const main = { name: 'main', image: 'example/web:1' };

test('records the start of a container only if the container is never started again after a failed start', () => {
  const isOnly = (pod: string | undefined, container?: string) =>
    isOnlyStart(aPod({ spec: { restartPolicy: pod } }), { ...main, restartPolicy: container });
  assert.equal(isOnly('Never'), true);
  assert.equal(isOnly('Always'), false);
  assert.equal(isOnly('OnFailure'), false);
  assert.equal(isOnly('Never', 'Always'), false);
  assert.equal(isOnly('Always', 'Never'), true);
});

test('a container whose start was interrupted counts as created', () => {
  const failed = anInstance(main, { state: 'exited', startedAtNs: 0n, exitCode: 128, reason: 'StartError' });
  const observed = anObservedPod({ containers: [failed] });
  assert.equal(withInterruptedStart(observed, failed.id).containers[0]?.state, 'created');
});

test('a container that ran, or whose failed start was reported, keeps its observed state', () => {
  const ran = anInstance(main, { state: 'exited', startedAtNs: 5n });
  const refused = anInstance(main, { state: 'exited', startedAtNs: 0n });
  for (const [one, id] of [
    [ran, ran.id],
    [refused, undefined],
    [refused, 'another'],
  ] as const) {
    const observed = anObservedPod({ containers: [one] });
    assert.equal(withInterruptedStart(observed, id), observed);
  }
});
