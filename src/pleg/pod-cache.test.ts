import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { observedOf } from '../../test/fakes/pod-sketch.ts';
import { settle } from '../../test/fakes/virtual-clock.ts';
import { podUid } from '../pods/index.ts';
import { PodCache } from './pod-cache.ts';

const uid = podUid('uid-1');
const never = new AbortController().signal;
const seen = (state: 'running' | 'exited' = 'running') =>
  ({ kind: 'seen', pod: observedOf(uid, state) }) as const;

/** The state of a promise: pending, resolved or rejected. */
function watch(promise: Promise<unknown>): { state: 'waiting' | 'released' | 'failed' } {
  const watched: { state: 'waiting' | 'released' | 'failed' } = { state: 'waiting' };
  promise.then(
    () => {
      watched.state = 'released';
    },
    () => {
      watched.state = 'failed';
    },
  );
  return watched;
}

test('returns an empty result and no error for an unknown pod', () => {
  const pod = new PodCache().get(uid);
  assert.deepEqual([pod.uid, pod.sandboxes, pod.containers], [uid, [], []]);
});

test('blocks getNewerThan for an unknown pod before the first relist of all pods', async () => {
  const expected: string[] = [];
  const cache = new PodCache();
  cache.onAwaited((id) => expected.push(id));
  const news = watch(cache.getNewerThan(uid, Number.NEGATIVE_INFINITY, never));
  await settle();
  assert.deepEqual([news.state, expected, cache.globalStamp], ['waiting', [uid], undefined]);
  cache.setGlobal(1);
  await settle();
  assert.equal(news.state, 'released');
  assert.equal(cache.waiting, 0);
});

test('releases waiters by an observation with a newer timestamp, not by one with an equal timestamp', async () => {
  for (const tell of [
    (cache: PodCache, stamp: number) => void cache.set(uid, seen(), stamp),
    (cache: PodCache, stamp: number) => cache.setObserved(uid, stamp),
    (cache: PodCache, stamp: number) => cache.setGlobal(stamp),
  ]) {
    const cache = new PodCache();
    cache.set(uid, seen(), 1);
    const news = watch(cache.getNewerThan(uid, 5, never));
    for (const stamp of [2, 4, 5]) tell(cache, stamp);
    await settle();
    assert.equal(news.state, 'waiting');
    tell(cache, 5.001);
    await settle();
    assert.equal(news.state, 'released');
  }
});

test('does not release the waiters of a pod when another pod was observed', async () => {
  const cache = new PodCache();
  const news = watch(cache.getNewerThan(podUid('other'), 5, never));
  cache.set(uid, seen(), 6);
  await settle();
  assert.equal(news.state, 'waiting');
});

test('rejects waiters and get after a failed observation, and keeps the last successful one in lastSeen', async () => {
  const cache = new PodCache();
  cache.set(uid, seen(), 1);
  const error = new Error('cannot inspect');
  const news = cache.getNewerThan(uid, 1, never);
  cache.set(uid, { kind: 'failed', error }, 2);
  await assert.rejects(news, error);
  assert.throws(() => cache.get(uid), error);
  assert.deepEqual(cache.lastObserved(uid)?.ips, ['10.0.0.1']);
});

test('does not replace a newer observation with an older one', () => {
  const cache = new PodCache();
  assert.equal(cache.set(uid, seen('exited'), 7), true);
  assert.equal(cache.set(uid, seen('running'), 6), false);
  assert.equal(cache.get(uid).sandboxes[0]?.state, 'not-ready');
});

test('removes a cancelled waiter completely', async () => {
  const cache = new PodCache();
  const controller = new AbortController();
  const news = cache.getNewerThan(uid, 0, controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(news, /enough/);
  assert.equal(cache.waiting, 0);
  await assert.rejects(cache.getNewerThan(uid, 0, controller.signal), /enough/);
});

test('releases waiters only by newer observations in any order of updates', async () => {
  const tell = fc.record({
    how: fc.constantFrom('set', 'fail', 'observed', 'global', 'delete'),
    stamp: fc.integer({ min: 0, max: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(tell), fc.integer({ min: 0, max: 20 }), async (tells, stamp) => {
      const cache = new PodCache();
      cache.set(uid, seen(), 0);
      const news = watch(cache.getNewerThan(uid, stamp, never));
      let newest = 0;
      let present = true;
      for (const told of tells) {
        if (told.how === 'set') cache.set(uid, seen(), told.stamp);
        if (told.how === 'fail') cache.set(uid, { kind: 'failed', error: new Error('x') }, told.stamp);
        if (told.how === 'observed') cache.setObserved(uid, told.stamp);
        if (told.how === 'global') cache.setGlobal(told.stamp);
        if (told.how === 'delete') cache.delete(uid);
        present = told.how === 'set' || told.how === 'fail' || (present && told.how !== 'delete');
        // Waiters for a missing pod are released only by a relist of all pods.
        if (told.how === 'global' || present) newest = Math.max(newest, told.stamp);
      }
      await settle();
      assert.equal(news.state === 'waiting', newest <= stamp);
    }),
    { numRuns: 300 },
  );
});
