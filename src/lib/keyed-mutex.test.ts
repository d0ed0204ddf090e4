import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { seededRandom } from './random.ts';

const open = () => new AbortController().signal;

test('a key has one holder at a time and is passed to its waiters in order', async () => {
  const mutex = new KeyedMutex<string>();
  const order: number[] = [];
  const first = await mutex.acquire('a', open());
  const rest = [1, 2, 3].map((id) =>
    mutex.run(
      'a',
      async () => {
        order.push(id);
      },
      open(),
    ),
  );
  assert.deepEqual(order, []);
  first[Symbol.dispose]();
  await Promise.all(rest);
  assert.deepEqual(order, [1, 2, 3]);
});

test('locks of different keys are independent, and unused ones are removed', async () => {
  const mutex = new KeyedMutex<string>();
  const a = await mutex.acquire('a', open());
  const b = await mutex.acquire('b', open());
  assert.equal(mutex.size, 2);
  assert.equal(mutex.isHeld('a'), true);
  a[Symbol.dispose]();
  b[Symbol.dispose]();
  assert.equal(mutex.size, 0);
  assert.equal(mutex.isHeld('a'), false);
});

test('releasing a lock twice does not release the lock of the next holder', async () => {
  const mutex = new KeyedMutex<string>();
  const first = await mutex.acquire('a', open());
  const second = mutex.acquire('a', open());
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  await second;
  assert.equal(mutex.isHeld('a'), true);
});

test('an aborted waiter leaves the queue and removes its listener', async () => {
  const mutex = new KeyedMutex<string>();
  const held = await mutex.acquire('a', open());
  const leaving = new AbortController();
  const waiting = mutex.acquire('a', leaving.signal);
  leaving.abort(new Error('left'));
  await assert.rejects(waiting, /left/);
  assert.equal(getEventListeners(leaving.signal, 'abort').length, 0);
  held[Symbol.dispose]();
  assert.equal(mutex.size, 0);
});

test('does not acquire a key with an aborted signal', async () => {
  const mutex = new KeyedMutex<string>();
  await assert.rejects(mutex.acquire('a', AbortSignal.abort(new Error('early'))), /early/);
  assert.equal(mutex.size, 0);
});

test('releases the key when the work fails', async () => {
  const mutex = new KeyedMutex<string>();
  await assert.rejects(
    mutex.run(
      'a',
      async () => {
        throw new Error('x');
      },
      open(),
    ),
    /x/,
  );
  assert.equal(mutex.size, 0);
});

test('work of one key never overlaps in any schedule, and all locks are removed', async () => {
  const job = fc.record({
    key: fc.nat(2),
    startMs: fc.nat(20),
    workMs: fc.nat(10),
    giveUpMs: fc.option(fc.nat(30)),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(job, { maxLength: 12 }), fc.nat(), async (jobs, seed) => {
      const clock = new VirtualClock({ random: seededRandom(seed) });
      const mutex = new KeyedMutex<number>();
      const inside = new Set<number>();
      const all = jobs.map(async ({ key, startMs, workMs, giveUpMs }) => {
        const controller = new AbortController();
        if (giveUpMs !== null) clock.timer(giveUpMs, () => controller.abort(new Error('aborted')));
        await clock.sleep(startMs, open());
        const work = async () => {
          assert.equal(inside.has(key), false);
          inside.add(key);
          await clock.sleep(workMs, open());
          inside.delete(key);
        };
        await mutex
          .run(key, work, controller.signal)
          .catch((error) => assert.match(String(error), /aborted/));
      });
      await clock.advance(1000);
      await Promise.all(all);
      assert.equal(mutex.size, 0);
    }),
    { numRuns: 50 },
  );
});

test('callers that lock several keys in any order do not deadlock, and all locks are released', async () => {
  const clock = new VirtualClock();
  const mutex = new KeyedMutex<string>();
  const story: string[] = [];
  const work = async (name: string, keys: readonly string[]) => {
    using _held = await mutex.acquireAll(keys, open());
    story.push(`${name} begins`);
    await clock.sleep(10, open());
    story.push(`${name} ends`);
  };
  const all = [work('a', ['x', 'y', 'x']), work('b', ['y', 'x']), work('c', ['z'])];
  const given = new AbortController();
  const late = mutex.acquireAll(['w', 'x'], given.signal);
  await clock.advance(5);
  given.abort(new Error('aborted'));
  await assert.rejects(late, /aborted/);
  assert.equal(mutex.isHeld('w'), false);
  await clock.advance(100);
  await Promise.all(all);
  assert.equal(story.length, 6);
  assert.ok(story.indexOf('a ends') < story.indexOf('b begins'));
  assert.equal(mutex.size, 0);
});
