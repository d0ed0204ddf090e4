import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { cancelledError, Subscription } from '../lib/index.ts';
import { InputMux, ticker } from './input-mux.ts';

function queue() {
  return new Subscription<string>({ keep: 'each', capacity: 100 });
}

test('InputMux delivers the items of one input in order and starves no input', async () => {
  const controller = new AbortController();
  const [busy, quiet] = [queue(), queue()];
  const mux = new InputMux({ busy, quiet }, controller.signal);
  for (const item of ['a', 'b', 'c', 'd']) busy.push(item);
  quiet.push('once');
  await settle();
  const observed: unknown[] = [];
  for (let count = 0; count < 5; count++) observed.push((await mux.take(controller.signal))?.item);
  assert.deepEqual(
    observed.filter((item) => item !== 'once'),
    ['a', 'b', 'c', 'd'],
  );
  assert.ok(observed.indexOf('once') <= 1, `the quiet input came at once: ${observed.join()}`);
  controller.abort(cancelledError('done'));
});

test('InputMux does not read an input whose last item was not delivered', async () => {
  const controller = new AbortController();
  let requestCount = 0;
  const mux = new InputMux({ one: { next: async () => ++requestCount } }, controller.signal);
  await settle();
  assert.equal(requestCount, 1);
  await mux.take(controller.signal);
  await settle();
  assert.equal(requestCount, 2);
  controller.abort(cancelledError('done'));
});

test('InputMux ends when an input ends, and throws the error of an input that fails', async () => {
  const { signal } = new AbortController();
  const ended = new InputMux({ one: { next: async () => undefined } }, signal);
  assert.equal(await ended.take(signal), undefined);
  const failed = new InputMux({ one: { next: () => Promise.reject(new Error('broken')) } }, signal);
  await assert.rejects(failed.take(signal), /broken/);
});

test('InputMux stops waiting on abort and leaves no listener', async () => {
  const controller = new AbortController();
  const clock = new VirtualClock();
  const mux = new InputMux({ tick: ticker(clock, 1_000) }, controller.signal);
  const waiting = mux.take(controller.signal);
  await settle();
  controller.abort(cancelledError('enough'));
  await assert.rejects(waiting, /enough/);
  await settle();
  assert.equal(clock.pendingTimers, 0);
});

test('a ticker input coalesces ticks that were not consumed in time', async () => {
  const controller = new AbortController();
  const clock = new VirtualClock();
  const mux = new InputMux({ tick: ticker(clock, 1_000) }, controller.signal);
  await clock.advance(10_500);
  await mux.take(controller.signal);
  await mux.take(controller.signal);
  let third = false;
  const taken = mux.take(controller.signal).then(() => {
    third = true;
  });
  await settle();
  assert.equal(third, false);
  await clock.advance(1_000);
  await taken;
  controller.abort(cancelledError('done'));
});
