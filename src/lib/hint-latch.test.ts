import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { cancelledError } from './abort.ts';
import { HintLatch } from './hint-latch.ts';

const { signal } = new AbortController();

test('a wait ends at the first hint or after its time limit', async () => {
  const clock = new VirtualClock();
  const latch = new HintLatch(clock);
  const first = latch.wait(1_000, signal);
  latch.raise();
  assert.equal(await first, 'hint');
  latch.clear();
  const second = latch.wait(1_000, signal);
  await clock.advance(1_000);
  assert.equal(await second, 'time');
  assert.equal(clock.pendingTimers, 0);
});

test('a hint without a waiter is remembered until it is cleared', async () => {
  const latch = new HintLatch(new VirtualClock());
  latch.raise();
  assert.equal(await latch.wait(1_000, signal), 'hint');
  assert.equal(await latch.wait(1_000, signal), 'hint');
});

test('an aborted wait leaves no listener and no timer', async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const waiting = new HintLatch(clock).wait(1_000, controller.signal);
  controller.abort(cancelledError('enough'));
  await assert.rejects(waiting, /enough/);
  assert.equal(clock.pendingTimers, 0);
});
