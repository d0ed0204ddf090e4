import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { Paced } from './keyed-throttle.ts';

function rig() {
  const clock = new VirtualClock();
  const done: string[] = [];
  const paced = new Paced<string>(clock, 1_000, (key) => void done.push(`${key} ${clock.monotonicMs()}`));
  return { clock, done, paced };
}

test('the first is done at once, and each key has a pause of its own', () => {
  const { done, paced } = rig();
  paced.ask('a');
  paced.ask('b');
  assert.deepEqual(done, ['a 0', 'b 0']);
});

test('what is asked for in the pause is done once, at its end', async () => {
  const { clock, done, paced } = rig();
  paced.ask('a');
  for (let times = 0; times < 50; times++) {
    await clock.advance(30);
    paced.ask('a');
  }
  await clock.advance(10_000);
  assert.deepEqual(done, ['a 0', 'a 1000', 'a 2000']);
  assert.deepEqual([paced.size, clock.pendingTimers], [0, 0]);
});

test('once it is disposed of nothing is done any more', async () => {
  const { clock, done, paced } = rig();
  paced.ask('a');
  paced.ask('a');
  paced[Symbol.dispose]();
  await clock.advance(10_000);
  assert.deepEqual([done, clock.pendingTimers], [['a 0'], 0]);
});
