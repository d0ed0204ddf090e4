import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPorts, readRemoteExit, readRequestedStreams } from './remote-command.ts';

test('parses the exit code of a process from the Status object', () => {
  assert.deepEqual(readRemoteExit('{"metadata":{},"status":"Success"}'), { kind: 'exited', code: 0 });
  const failure = {
    status: 'Failure',
    reason: 'NonZeroExitCode',
    message: 'command terminated with non-zero exit code',
    details: { causes: [{ reason: 'ExitCode', message: '7' }] },
  };
  assert.deepEqual(readRemoteExit(JSON.stringify(failure)), { kind: 'exited', code: 7 });
  assert.deepEqual(readRemoteExit('{"status":"Failure","message":"no such file"}'), {
    kind: 'failed',
    message: 'no such file',
  });
  for (const text of ['', 'null', '3', '{"status"']) assert.equal(readRemoteExit(text).kind, 'failed', text);
});

test('parses the requested streams; with a terminal there is no stderr', () => {
  const read = (query: string) => readRequestedStreams(new URLSearchParams(query));
  assert.deepEqual(read('input=1&output=1&error=1'), {
    kind: 'read',
    value: { stdin: true, stdout: true, stderr: true, tty: false },
  });
  assert.deepEqual(read('output=1&error=1&tty=1'), {
    kind: 'read',
    value: { stdin: false, stdout: true, stderr: false, tty: true },
  });
  const none = { kind: 'wrong', message: 'you must specify at least 1 of stdin, stdout, stderr' };
  assert.deepEqual(read(''), none);
  assert.deepEqual(read('input=true'), none);
  assert.deepEqual(read('error=1&tty=1'), none);
});

test('parses ports that are repeated or separated by commas, and rejects anything else', () => {
  const read = (query: string) => readPorts(new URLSearchParams(query));
  assert.deepEqual(read('port=80&port=81,82'), { kind: 'read', value: [80, 81, 82] });
  for (const wrong of ['', 'port=', 'port=0', 'port=65536', 'port=x', 'port=80,', 'port=-1']) {
    assert.equal(read(wrong).kind, 'wrong', wrong);
  }
});
