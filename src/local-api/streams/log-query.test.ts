import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatusError } from '../api/index.ts';
import { logQuery } from './log-query.ts';

function refusal(query: string): { readonly code: number; readonly message: string } {
  try {
    logQuery(new URLSearchParams(query), 'web');
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  throw new assert.AssertionError({ message: `${query} was accepted` });
}

test('forwards the supported log options to the kubelet', () => {
  const query = new URLSearchParams(
    'container=a&follow=true&previous=false&timestamps=1&tailLines=+5&limitBytes=10&sinceSeconds=3&pretty=true',
  );
  query.set('tailLines', '+5');
  assert.equal(
    logQuery(query, 'web').toString(),
    'follow=true&timestamps=true&sinceSeconds=3&tailLines=5&limitBytes=10',
  );
  const time = '2026-01-02T03:04:05.123456789Z';
  assert.equal(logQuery(new URLSearchParams({ sinceTime: time }), 'web').get('sinceTime'), time);
});

test('reports all invalid log options together', () => {
  assert.deepEqual(
    refusal('tailLines=-1').message,
    'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
  );
  const { code, message } = refusal(
    'tailLines=-1&limitBytes=0&sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z',
  );
  assert.equal(code, 422);
  assert.equal(
    message,
    'PodLogOptions "web" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0, []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified]',
  );
  assert.match(refusal('sinceSeconds=0').message, /sinceSeconds: Invalid value: 0: must be greater than 0/);
});

test('rejects malformed numbers and times in log options as bad requests', () => {
  assert.equal(refusal('tailLines=many').code, 400);
  assert.equal(refusal('sinceTime=yesterday').code, 400);
});

test('accepts the log of a single stream, but not together with tailLines', () => {
  assert.equal(logQuery(new URLSearchParams('stream=Stdout'), 'web').get('stream'), 'Stdout');
  assert.match(
    refusal('stream=Other').message,
    /stream: Unsupported value: "Other": supported values: "All"/,
  );
  assert.match(refusal('stream=Stdout&tailLines=1').message, /mutually exclusive/);
});
