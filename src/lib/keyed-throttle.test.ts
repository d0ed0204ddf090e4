import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { KeyedThrottle } from './keyed-throttle.ts';

function createHarness() {
  const clock = new VirtualClock();
  const done: string[] = [];
  const paced = new KeyedThrottle<string>(
    clock,
    1_000,
    (key) => void done.push(`${key} ${clock.monotonicMs()}`),
  );
  return { clock, done, paced };
}

test('acts immediately on the first request and throttles each key separately', () => {
  const { done, paced } = createHarness();
  paced.request('a');
  paced.request('b');
  assert.deepEqual(done, ['a 0', 'b 0']);
});

test('coalesces the requests during an interval into one action at its end', async () => {
  const { clock, done, paced } = createHarness();
  paced.request('a');
  for (let times = 0; times < 50; times++) {
    await clock.advance(30);
    paced.request('a');
  }
  await clock.advance(10_000);
  assert.deepEqual(done, ['a 0', 'a 1000', 'a 2000']);
  assert.deepEqual([paced.size, clock.pendingTimers], [0, 0]);
});

test('KeyedThrottle does nothing after its disposal', async () => {
  const { clock, done, paced } = createHarness();
  paced.request('a');
  paced.request('a');
  paced[Symbol.dispose]();
  await clock.advance(10_000);
  assert.deepEqual([done, clock.pendingTimers], [['a 0'], 0]);
});
