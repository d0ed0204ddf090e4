import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mock, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { apiTime, realClock, strictlyIncreasing } from './clock.ts';

const day = 24 * 60 * 60 * 1000;
const longest = 2 ** 31 - 1;

test('`stamp` of the real clock returns strictly increasing values close to its monotonic time', () => {
  const clock = realClock();
  let last = clock.stamp();
  for (let i = 0; i < 20_000; i++) {
    const next = clock.stamp();
    assert.ok(next > last);
    last = next;
  }
  assert.ok(Math.abs(clock.monotonicMs() - last) < 1000);
});

test('`stamp` returns increasing values even if the clock repeats a reading or goes back', () => {
  const readings = fc.array(fc.double({ min: 0, max: 1e15, noNaN: true }), { minLength: 2 });
  fc.assert(
    fc.property(readings, fc.nat(3), (values, repeats) => {
      const each = values.flatMap((value) => Array<number>(repeats + 1).fill(value));
      let at = 0;
      const stamp = strictlyIncreasing(() => each[at++] ?? 0);
      const stamps = each.map(stamp);
      for (const [index, next] of stamps.entries()) assert.ok(index === 0 || next > (stamps[index - 1] ?? 0));
    }),
  );
});

test('on a stopped clock, a million calls of `stamp` advance its value by less than a millisecond', () => {
  const stamp = strictlyIncreasing(() => 86_400_000);
  let last = 0;
  for (let i = 0; i < 1_000_000; i++) last = stamp();
  assert.ok(last < 86_400_001);
});

test('the wall time of the real clock is that of the machine', () => {
  assert.ok(Math.abs(realClock().now() - Date.now()) < 60_000);
});

test('a real timer fires once, and not after it was cancelled', async () => {
  const clock = realClock();
  const fired: string[] = [];
  const cancelledTimer = clock.timer(1, () => fired.push('cancelled'));
  cancelledTimer.cancel();
  cancelledTimer.cancel();
  await new Promise<void>((resolve) => {
    clock.timer(5, () => {
      fired.push('kept');
      resolve();
    });
  });
  assert.deepEqual(fired, ['kept']);
});

/** Fake timers of Node.js with their clock, which the test advances. */
function byHand(context: TestContext): (ms: number) => void {
  let nowMs = 1_000;
  mock.timers.enable({ apis: ['setTimeout'] });
  context.after(() => mock.timers.reset());
  context.mock.method(performance, 'now', () => nowMs);
  return (ms) => {
    nowMs += ms;
    mock.timers.tick(ms);
  };
}

test('a timer longer than the maximum of Node.js fires at its time, not immediately', (context) => {
  const tick = byHand(context);
  let fired = 0;
  realClock().timer(60 * day, () => fired++);
  tick(longest);
  tick(longest);
  tick(60 * day - 2 * longest - 1);
  assert.equal(fired, 0);
  tick(1);
  assert.equal(fired, 1);
});

test('a timer longer than the maximum of Node.js can still be cancelled after the first part of its delay', (context) => {
  const tick = byHand(context);
  const timer = realClock().timer(60 * day, () => assert.fail('cancelled'));
  tick(longest);
  timer[Symbol.dispose]();
  tick(60 * day);
});

test('a timer that Node.js fires too early waits for the rest of its delay', (context) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  context.after(() => mock.timers.reset());
  let nowMs = 1_000.9;
  context.mock.method(performance, 'now', () => nowMs);
  let fired = 0;
  realClock().timer(199.6, () => fired++);
  nowMs += 199.5;
  mock.timers.tick(200);
  assert.equal(fired, 0);
  nowMs += 0.2;
  mock.timers.tick(1);
  assert.equal(fired, 1);
});

test('a delay of NaN is rejected', () => {
  assert.throws(() => realClock().timer(Number.NaN, () => {}), { code: 'BUG' });
});

test('a sleep ends in time and leaves no listener', async () => {
  const controller = new AbortController();
  await realClock().sleep(1, controller.signal);
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
});

test('an aborted sleep rejects with the reason and leaves no timer', async () => {
  const controller = new AbortController();
  const sleeping = realClock().sleep(day, controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(sleeping, /enough/);
});

test('a sleep with an aborted signal sets no timer', async () => {
  await assert.rejects(realClock().sleep(day, AbortSignal.abort(new Error('early'))), /early/);
});

test('a time of the API has whole seconds, truncated and not rounded', () => {
  assert.equal(apiTime(Date.UTC(2026, 0, 31, 12, 0, 5, 999)), '2026-01-31T12:00:05Z');
  assert.equal(apiTime(Date.UTC(12_026, 0, 1)), '+012026-01-01T00:00:00Z');
});
