import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { seededRandom } from '../../src/lib/random.ts';
import { settle, VirtualClock } from './virtual-clock.ts';

function order(clock: VirtualClock, delays: readonly number[]): number[] {
  const fired: number[] = [];
  delays.forEach((ms, index) => {
    clock.timer(ms, () => fired.push(index));
  });
  return fired;
}

test('time stands still until it is advanced', async () => {
  const clock = new VirtualClock({ startMs: 1000 });
  assert.equal(clock.now(), 1000);
  await settle();
  assert.equal(clock.monotonicMs(), 0);
  await clock.advance(250);
  assert.equal(clock.now(), 1250);
  assert.equal(clock.monotonicMs(), 250);
});

test('timers fire in the order of their time, and of their creation when due together', async () => {
  const clock = new VirtualClock();
  const fired = order(clock, [30, 10, 20, 10, 0]);
  await clock.advance(30);
  assert.deepEqual(fired, [4, 1, 3, 2, 0]);
  assert.equal(clock.pendingTimers, 0);
});

test('a seed determines the order of timers due together: the same seed gives the same order', async () => {
  const run = async (seed: number) => {
    const clock = new VirtualClock({ random: seededRandom(seed) });
    const fired = order(clock, Array<number>(20).fill(5));
    await clock.advance(5);
    return fired.join();
  };
  assert.equal(await run(1), await run(1));
  assert.notEqual(await run(1), await run(2));
});

test('each timer callback runs at the time for which it was set, and its work completes before time advances', async () => {
  const clock = new VirtualClock();
  const observed: string[] = [];
  const signal = new AbortController().signal;
  const walk = async () => {
    await clock.sleep(10, signal);
    observed.push(`first at ${clock.monotonicMs()}`);
    await clock.sleep(10, signal);
    observed.push(`second at ${clock.monotonicMs()}`);
  };
  const walking = walk();
  clock.timer(15, () => observed.push(`between at ${clock.monotonicMs()}`));
  await clock.advance(100);
  await walking;
  assert.deepEqual(observed, ['first at 10', 'between at 15', 'second at 20']);
});

test('a cancelled timer does not fire and is not retained', async () => {
  const clock = new VirtualClock();
  const timer = clock.timer(5, () => assert.fail('cancelled'));
  assert.equal(clock.pendingTimers, 1);
  timer.cancel();
  timer.cancel();
  assert.equal(clock.pendingTimers, 0);
  await clock.advance(10);
});

test('a timer may be cancelled by one due at the same moment', async () => {
  const clock = new VirtualClock();
  clock.timer(5, () => second.cancel());
  const second = clock.timer(5, () => assert.fail('cancelled'));
  await clock.advance(5);
});

test('a timer set in the past or for now fires without time passing', async () => {
  const clock = new VirtualClock();
  const fired = order(clock, [-5, 0]);
  await clock.advance(0);
  assert.deepEqual(fired, [0, 1]);
  assert.equal(clock.monotonicMs(), 0);
});

test('timestamps are strictly increasing while time stands still, and after it advanced', async () => {
  const clock = new VirtualClock();
  const first = clock.stamp();
  const second = clock.stamp();
  await clock.advance(1);
  const third = clock.stamp();
  assert.ok(first < second && second < third);
});

test('the wall clock jumps without changing the monotonic time or a timer', async () => {
  const clock = new VirtualClock({ startMs: 0 });
  const fired = order(clock, [10]);
  clock.jumpWall(3_600_000);
  await clock.advance(9);
  assert.deepEqual(fired, []);
  assert.equal(clock.now(), 3_600_009);
  clock.jumpWall(-7_200_000);
  await clock.advance(1);
  assert.deepEqual(fired, [0]);
});

test('waiting for a condition stops as soon as it holds', async () => {
  const clock = new VirtualClock();
  const fired = order(clock, [10, 20, 30]);
  assert.equal(await clock.advanceUntil(() => fired.length === 2, 1000), true);
  assert.equal(clock.monotonicMs(), 20);
  assert.equal(await clock.advanceUntil(() => false, 100), false);
  assert.equal(clock.monotonicMs(), 120);
});

test('two concurrent callers that advance the time never turn it back', async () => {
  const clock = new VirtualClock();
  order(clock, [50, 60, 70]);
  await Promise.all([clock.advance(100), clock.advance(10)]);
  assert.equal(clock.monotonicMs(), 100);
});

test('a delay that is not a number is rejected', () => {
  assert.throws(() => new VirtualClock().timer(Number.NaN, () => {}), { code: 'BUG' });
});

test('an infinite delay never fires', async () => {
  const clock = new VirtualClock();
  clock.timer(Number.POSITIVE_INFINITY, () => assert.fail('never'));
  await clock.advance(1e12);
  assert.equal(clock.pendingTimers, 1);
});

test('an aborted sleep leaves neither timer nor listener', async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const sleeping = clock.sleep(10, controller.signal);
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1);
  controller.abort(new Error('enough'));
  await assert.rejects(sleeping, /enough/);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
});

test('fifty thousand pending timers are cheap to set, to cancel and to skip', async () => {
  const clock = new VirtualClock({ random: seededRandom(1) });
  const random = seededRandom(2);
  const started = process.threadCpuUsage();
  const timers = Array.from({ length: 50_000 }, () => clock.timer(1e6 + random.next() * 1e6, () => {}));
  for (let i = 0; i < 2000; i++) clock.timer(i, () => {});
  await clock.advance(2000);
  for (const timer of timers) timer.cancel();
  assert.equal(clock.pendingTimers, 0);
  // A scan of all timers for each fired one would take a hundred million steps; the limit allows
  // for a slow machine.
  assert.ok(process.threadCpuUsage(started).user < 5e6);
});
