import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { IdleTimer } from './idle-timer.ts';

async function rig(limitMs: number) {
  const clock = new VirtualClock();
  let expired = 0;
  const timer = new IdleTimer(clock, limitMs, () => {
    expired += 1;
  });
  return { clock, timer, expired: () => expired };
}

test('it fires once nothing has touched it for the whole limit', async () => {
  const { clock, timer, expired } = await rig(1000);
  await clock.advance(900);
  timer.touch();
  await clock.advance(900);
  assert.equal(expired(), 0);
  await clock.advance(100);
  assert.equal(expired(), 1);
  await clock.advance(5000);
  assert.equal(expired(), 1);
});

test('no limit never fires, until it is given one; a limit only becomes shorter', async () => {
  const { clock, timer, expired } = await rig(0);
  await clock.advance(1_000_000);
  timer.shorten(50);
  timer.shorten(500);
  await clock.advance(49);
  assert.equal(expired(), 0);
  await clock.advance(1);
  assert.equal(expired(), 1);
});

test('after it was disposed it does not fire', async () => {
  const { clock, timer, expired } = await rig(10);
  timer[Symbol.dispose]();
  await clock.advance(100);
  assert.equal(expired(), 0);
});
