import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf, type SyncAction } from './sync-result.ts';

const failed = (target: string, retryAtMs?: number): SyncAction => ({
  action: 'StartContainer',
  target,
  failure: {
    reason: retryAtMs === undefined ? 'CreateContainerError' : 'CrashLoopBackOff',
    message: 'it said "no"',
    ...(retryAtMs === undefined ? {} : { retryAtMs }),
  },
});

test('what went well is no error', () => {
  assert.equal(errorOf('POD_SYNC', [{ action: 'StartContainer', target: 'a' }]), undefined);
});

test('one failure is told by itself, several in brackets', () => {
  const text = (name: string) =>
    `failed to "StartContainer" for "${name}" with CreateContainerError: "it said \\"no\\""`;
  assert.equal(errorOf('POD_SYNC', [failed('a')])?.message, text('a'));
  assert.equal(errorOf('POD_SYNC', [failed('a'), failed('b')])?.message, `[${text('a')}, ${text('b')}]`);
});

test('who only waits is tried when the first wait is over, who failed otherwise as soon as any other', () => {
  assert.equal(errorOf('POD_SYNC', [failed('a', 900), failed('b', 500)])?.details['retryAtMs'], 500);
  assert.equal(errorOf('POD_SYNC', [failed('a', 900), failed('b')])?.details['retryAtMs'], undefined);
});
