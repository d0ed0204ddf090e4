import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { Subscription } from './subscription.ts';

const open = () => new AbortController().signal;
const keyed = (capacity: number) =>
  new Subscription<readonly [string, number]>({ keep: 'newest-of-key', capacity, keyOf: ([key]) => key });

async function rest<T>(subscription: Subscription<T>): Promise<T[]> {
  subscription.close();
  return await Array.fromAsync(subscription.items(open()));
}

test('a waiting reader gets an item immediately, and items sent while no reader waits are buffered', async () => {
  const subscription = new Subscription<number>({ keep: 'each', capacity: 5 });
  const waiting = subscription.next(open());
  subscription.push(1);
  assert.equal(await waiting, 1);
  subscription.push(2);
  subscription.push(3);
  assert.equal(subscription.size, 2);
  assert.equal(await subscription.next(open()), 2);
  assert.deepEqual(await rest(subscription), [3]);
});

test('a slow reader loses the oldest items, and they are counted', async () => {
  const subscription = new Subscription<number>({ keep: 'each', capacity: 2 });
  for (let i = 0; i < 10; i++) subscription.push(i);
  assert.equal(subscription.dropped, 8);
  assert.deepEqual(await rest(subscription), [8, 9]);
});

test('items with the same key coalesce to the newest, at the position of the first', async () => {
  const subscription = keyed(5);
  subscription.push(['a', 1]);
  subscription.push(['b', 2]);
  subscription.push(['a', 3]);
  assert.equal(subscription.dropped, 0);
  assert.deepEqual(await rest(subscription), [
    ['a', 3],
    ['b', 2],
  ]);
});

test('beyond the capacity the oldest key is dropped and counted', async () => {
  const subscription = keyed(2);
  for (const key of ['a', 'b', 'c']) subscription.push([key, 0]);
  assert.equal(subscription.dropped, 1);
  assert.deepEqual(await rest(subscription), [
    ['b', 0],
    ['c', 0],
  ]);
});

test('close releases waiting readers and notifies the sender once', async () => {
  let reported = 0;
  const subscription = new Subscription<number>({ keep: 'each', capacity: 2 }, () => reported++);
  const waiting = subscription.next(open());
  subscription.close();
  subscription.close();
  subscription.push(1);
  assert.equal(await waiting, undefined);
  assert.equal(await subscription.next(open()), undefined);
  assert.equal(reported, 1);
  assert.equal(subscription.closed, true);
});

test('leaving the loop over a subscription closes it', async () => {
  const subscription = new Subscription<number>({ keep: 'each', capacity: 5 });
  for (let i = 0; i < 3; i++) subscription.push(i);
  for await (const item of subscription.items(open())) if (item === 1) break;
  assert.equal(subscription.closed, true);
});

test('an abort ends the loop over a subscription with its reason and leaves no listener', async () => {
  const subscription = new Subscription<number>({ keep: 'each', capacity: 5 });
  const controller = new AbortController();
  const reading = Array.fromAsync(subscription.items(controller.signal));
  controller.abort(new Error('enough'));
  await assert.rejects(reading, /enough/);
  assert.equal(subscription.closed, true);
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
});

test('rejects an invalid subscription capacity', () => {
  assert.throws(() => new Subscription({ keep: 'each', capacity: 0 }), { code: 'BUG' });
  assert.throws(() => keyed(-1), { code: 'BUG' });
});

test('items read plus items dropped are the items sent, in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean()), fc.integer({ min: 1, max: 4 }), async (steps, capacity) => {
      const subscription = new Subscription<number>({ keep: 'each', capacity });
      const read: (number | undefined)[] = [];
      let sent = 0;
      for (const send of steps) {
        if (send) subscription.push(sent++);
        else if (subscription.size > 0) read.push(await subscription.next(open()));
        assert.ok(subscription.size <= capacity);
      }
      read.push(...(await rest(subscription)));
      assert.equal(read.length + subscription.dropped, sent);
      assert.deepEqual(
        read,
        read.toSorted((a, b) => (a ?? 0) - (b ?? 0)),
      );
    }),
  );
});
