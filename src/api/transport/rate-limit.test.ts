import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError } from '../../lib/index.ts';
import { RequestRate, RequestSlots, rateLimitOf } from './rate-limit.ts';

const never = new AbortController().signal;

test('a burst goes at once, and then so many a second, in order', async () => {
  const clock = new VirtualClock();
  const rate = new RequestRate({ kind: 'limited', qps: 10, burst: 3 }, clock);
  const gone: [number, number][] = [];
  for (let each = 0; each < 6; each++) {
    rate.take(never).then(() => gone.push([each, Math.round(clock.monotonicMs())]), assert.fail);
  }
  await clock.advance(1_000);
  assert.deepEqual(gone, [
    [0, 0],
    [1, 0],
    [2, 0],
    [3, 100],
    [4, 200],
    [5, 300],
  ]);
  await clock.advance(10_000);
  await rate.take(never);
  await rate.take(never);
  await rate.take(never);
  assert.equal(clock.pendingTimers, 0);
});

test('who gives up gives the token back', async () => {
  const clock = new VirtualClock();
  const rate = new RequestRate({ kind: 'limited', qps: 1, burst: 1 }, clock);
  await rate.take(never);
  const controller = new AbortController();
  const waiting = rate.take(controller.signal);
  controller.abort(new KubelingError('CANCELLED', 'enough'));
  await assert.rejects(waiting, /enough/);
  let mine = false;
  rate.take(never).then(() => {
    mine = true;
  }, assert.fail);
  await clock.advance(1_000);
  assert(mine);
  assert.equal(clock.pendingTimers, 0);
});

test('0 means 5 a second, and less is refused', () => {
  assert.deepEqual(rateLimitOf(0, 0), { kind: 'limited', qps: 5, burst: 10 });
  assert.deepEqual(rateLimitOf(50, 100), { kind: 'limited', qps: 50, burst: 100 });
  assert.throws(() => rateLimitOf(-1, 5), /the rate must not be negative: current value is -1/);
  assert.throws(() => rateLimitOf(1, -5), /the burst must not be negative/);
});

test('no more are under way than there are places, and places are handed on', async () => {
  const slots = new RequestSlots(2);
  const [first, _second] = [await slots.take(never), await slots.take(never)];
  const order: string[] = [];
  const given = new AbortController();
  const gone = slots.take(given.signal);
  slots.take(never).then(() => order.push('third'), assert.fail);
  given.abort(new KubelingError('CANCELLED', 'enough'));
  await assert.rejects(gone, /enough/);
  await settle();
  assert.deepEqual(order, []);
  first[Symbol.dispose]();
  await settle();
  assert.deepEqual(order, ['third']);
});
