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

test('successful actions of a pod sync give no error', () => {
  assert.equal(errorOf('POD_SYNC', [{ action: 'StartContainer', target: 'a' }]), undefined);
});

test('formats a single failure without brackets, and several failures in brackets', () => {
  const text = (name: string) =>
    `failed to "StartContainer" for "${name}" with CreateContainerError: "it said \\"no\\""`;
  assert.equal(errorOf('POD_SYNC', [failed('a')])?.message, text('a'));
  assert.equal(errorOf('POD_SYNC', [failed('a'), failed('b')])?.message, `[${text('a')}, ${text('b')}]`);
});

test('when all failures are back-off, the retry time is the earliest expiry', () => {
  assert.equal(errorOf('POD_SYNC', [failed('a', 900), failed('b', 500)])?.details['retryAtMs'], 500);
  assert.equal(errorOf('POD_SYNC', [failed('a', 900), failed('b')])?.details['retryAtMs'], undefined);
});
