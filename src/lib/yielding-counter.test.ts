import assert from 'node:assert/strict';
import { test } from 'node:test';
import { YieldingCounter } from './yielding-counter.ts';

test('yields to the event loop after its number of steps', async () => {
  const slices = new YieldingCounter(3);
  assert.deepEqual([slices.count(), slices.count(), slices.count()], [false, false, true]);
  let turns = 0;
  setImmediate(() => turns++);
  await slices.yield();
  assert.equal(turns, 1);
  assert.deepEqual([slices.count(2), slices.count()], [false, true]);
});
