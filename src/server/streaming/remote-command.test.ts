import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRemoteEnd } from './remote-command.ts';

test('the end of a process is read from its status', () => {
  assert.deepEqual(readRemoteEnd('{"metadata":{},"status":"Success"}'), { kind: 'exited', code: 0 });
  const failure = {
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: 'command terminated with non-zero exit code',
    details: { causes: [{ reason: 'ExitCode', message: '7' }] },
  };
  assert.deepEqual(readRemoteEnd(JSON.stringify(failure)), { kind: 'exited', code: 7 });
  assert.deepEqual(readRemoteEnd('{"status":"Failure","message":"no such file"}'), {
    kind: 'failed',
    message: 'no such file',
  });
  for (const text of ['', 'null', '3', '{"status"']) assert.equal(readRemoteEnd(text).kind, 'failed', text);
});
