import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { Waiters } from './waiters.ts';

test('waiters are resolved in the order in which they began to wait', async () => {
  const waiters = new Waiters<number>();
  const signal = new AbortController().signal;
  const both = Promise.all([waiters.wait(signal), waiters.wait(signal)]);
  assert.equal(waiters.resolveFirst(1), true);
  assert.equal(waiters.resolveFirst(2), true);
  assert.equal(waiters.resolveFirst(3), false);
  assert.deepEqual(await both, [1, 2]);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('an aborted waiter is skipped', async () => {
  const waiters = new Waiters<number>();
  const leaving = new AbortController();
  const first = waiters.wait(leaving.signal);
  const second = waiters.wait(new AbortController().signal);
  leaving.abort(new Error('left'));
  await assert.rejects(first, /left/);
  assert.equal(waiters.size, 1);
  waiters.resolveAll(5);
  assert.equal(await second, 5);
});

test('a caller whose signal is already aborted does not join the queue', async () => {
  const waiters = new Waiters<number>();
  await assert.rejects(waiters.wait(AbortSignal.abort(new Error('early'))), /early/);
  assert.equal(waiters.size, 0);
});
