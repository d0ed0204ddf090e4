import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { IdleTimer } from './idle-timer.ts';

async function createHarness(limitMs: number) {
  const clock = new VirtualClock();
  let expired = 0;
  const timer = new IdleTimer(clock, limitMs, () => {
    expired += 1;
  });
  return { clock, timer, expired: () => expired };
}

test('calls back once when there was no activity for the full idle limit', async () => {
  const { clock, timer, expired } = await createHarness(1000);
  await clock.advance(900);
  timer.touch();
  await clock.advance(900);
  assert.equal(expired(), 0);
  await clock.advance(100);
  assert.equal(expired(), 1);
  await clock.advance(5000);
  assert.equal(expired(), 1);
});

test('never calls back without an idle limit; the limit can be set and shortened later', async () => {
  const { clock, timer, expired } = await createHarness(0);
  await clock.advance(1_000_000);
  timer.shorten(50);
  timer.shorten(500);
  await clock.advance(49);
  assert.equal(expired(), 0);
  await clock.advance(1);
  assert.equal(expired(), 1);
});

test('does not call back after the timer was disposed', async () => {
  const { clock, timer, expired } = await createHarness(10);
  timer[Symbol.dispose]();
  await clock.advance(100);
  assert.equal(expired(), 0);
});
