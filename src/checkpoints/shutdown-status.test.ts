import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isShutDown, shutDownStatus } from './shutdown-status.ts';

test('marks a pod that was terminated by a node shutdown as failed, unless it had succeeded', () => {
  const message = 'Pod was terminated in response to imminent node shutdown.';
  const before = [
    { type: 'Ready', status: 'False' },
    { type: 'DisruptionTarget', status: 'False' },
  ];
  const failed = shutDownStatus({ phase: 'Running', conditions: before });
  assert.deepEqual(failed, {
    phase: 'Failed',
    reason: 'Terminated',
    message,
    conditions: [
      { type: 'Ready', status: 'False' },
      { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message },
    ],
  });
  const succeeded = shutDownStatus({ phase: 'Succeeded' });
  assert.deepEqual([succeeded.phase, succeeded.reason], ['Succeeded', 'Terminated']);
  assert.deepEqual(
    [isShutDown(failed), isShutDown(succeeded), isShutDown({ phase: 'Failed' })],
    [true, false, false],
  );
});
