import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Semaphore } from './semaphore.ts';

const never = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('permits are passed to waiters in the order of their requests, and aborted waiters are skipped', async () => {
  const slots = new Semaphore(1);
  const taken: string[] = [];
  const first = await slots.acquire('first', never);
  const given = new AbortController();
  const take = (who: string, signal: AbortSignal) =>
    slots.acquire(who, signal).then(
      (slot) => {
        taken.push(who);
        return slot;
      },
      () => undefined,
    );
  const lost = take('lost', given.signal);
  const second = take('second', never);
  const third = take('third', never);
  assert.deepEqual([slots.waiting, slots.positionOf('second'), slots.positionOf('first')], [3, 2, undefined]);
  given.abort(new Error('enough'));
  await lost;
  first[Symbol.dispose]();
  await settled();
  assert.deepEqual(taken, ['second']);
  (await second)?.[Symbol.dispose]();
  (await third)?.[Symbol.dispose]();
  assert.deepEqual([taken, slots.waiting], [['second', 'third'], 0]);
});
