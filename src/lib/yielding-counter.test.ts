import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slices } from './yielding-counter.ts';

test('a slice is full after its steps, and a pause lets the event loop take a turn', async () => {
  const slices = new Slices(3);
  assert.deepEqual([slices.count(), slices.count(), slices.count()], [false, false, true]);
  let turns = 0;
  setImmediate(() => turns++);
  await slices.pause();
  assert.equal(turns, 1);
  assert.deepEqual([slices.count(2), slices.count()], [false, true]);
});
