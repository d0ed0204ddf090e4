import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TurnLimiter } from './turn-limiter.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('runs a limited number of tasks in each turn of the event loop, in the order of the calls', async () => {
  const limiter = new TurnLimiter(3);
  const ran: number[] = [];
  for (let task = 0; task < 8; task++) limiter.run(() => ran.push(task));
  assert.deepEqual(ran, [0, 1, 2]);
  await turn();
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5]);
  limiter.run(() => ran.push(8));
  await turn();
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  await turn();
  limiter.run(() => ran.push(9));
  assert.equal(ran.at(-1), 9);
});
