import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError } from '../../lib/index.ts';
import { RequestRate, RequestSlots, rateLimitOf } from './rate-limit.ts';

const never = new AbortController().signal;

test('admits a burst immediately and then requests at the configured rate, in order', async () => {
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

test('returns the token to the bucket when a waiting request is aborted', async () => {
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

test('uses the default rate of 5 per second for 0, and rejects negative rates', () => {
  assert.deepEqual(rateLimitOf(0, 0), { kind: 'limited', qps: 5, burst: 10 });
  assert.deepEqual(rateLimitOf(50, 100), { kind: 'limited', qps: 50, burst: 100 });
  assert.throws(() => rateLimitOf(-1, 5), /the rate must not be negative: current value is -1/);
  assert.throws(() => rateLimitOf(1, -5), /the burst must not be negative/);
});

test('limits requests in flight and gives a released slot to the next waiter', async () => {
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
