import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import fc from 'fast-check';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { realClock } from './clock.ts';
import { WorkQueue } from './work-queue.ts';

const open = () => new AbortController().signal;

function setUp() {
  const clock = new VirtualClock();
  return { clock, queue: new WorkQueue(clock) };
}

/** The next key if one is due now; the helper leaves no consumer in the queue. */
async function takeNow(queue: WorkQueue): Promise<string | undefined> {
  const controller = new AbortController();
  const taking = queue.next(controller.signal).catch(() => undefined);
  await settle();
  controller.abort(new Error('no key is due'));
  return taking;
}

test('a due key is delivered immediately', async () => {
  const { queue } = setUp();
  queue.add('a');
  assert.equal(await queue.next(open()), 'a');
  assert.equal(queue.inFlight, 1);
  queue.done('a');
  assert.equal(queue.inFlight, 0);
});

test('a consumer gets a delayed key when it is due, not before', async () => {
  const { clock, queue } = setUp();
  const taken: (string | undefined)[] = [];
  const taking = queue.next(open()).then((key) => taken.push(key));
  queue.add('a', 1000);
  await clock.advance(999);
  assert.deepEqual(taken, []);
  await clock.advance(1);
  await taking;
  assert.deepEqual(taken, ['a']);
  assert.equal(clock.pendingTimers, 0);
});

test('add can make a waiting key due earlier but never later', async () => {
  const { clock, queue } = setUp();
  queue.add('a', 1000);
  queue.add('a', 100);
  queue.add('a', 5000);
  assert.equal(queue.waiting, 1);
  await clock.advance(100);
  assert.deepEqual(queue.takeDue(), ['a']);
});

test('enqueue sets a new due time, later or earlier', async () => {
  const { clock, queue } = setUp();
  queue.enqueue('a', 100);
  queue.enqueue('a', 1000);
  await clock.advance(999);
  assert.deepEqual(queue.takeDue(), []);
  await clock.advance(1);
  assert.deepEqual(queue.takeDue(), ['a']);
  queue.enqueue('a', 1000);
  queue.enqueue('a', 0);
  assert.deepEqual(queue.takeDue(), ['a']);
});

test('keys are delivered in the order of their due times, then in the order of adding', async () => {
  const { clock, queue } = setUp();
  queue.add('late', 20);
  queue.add('first', 10);
  queue.add('second', 10);
  await clock.advance(20);
  assert.deepEqual(queue.takeDue(), ['first', 'second', 'late']);
});

test('a key that is added again with the same due time keeps its position', () => {
  const { queue } = setUp();
  queue.add('a');
  queue.add('b');
  queue.add('a');
  assert.deepEqual(queue.takeDue(), ['a', 'b']);
});

test('an in-flight key is not delivered again until it is done', async () => {
  const { queue } = setUp();
  queue.add('a');
  await queue.next(open());
  queue.add('a');
  assert.equal(queue.has('a'), true);
  assert.equal(await takeNow(queue), undefined);
  queue.done('a');
  assert.equal(await takeNow(queue), 'a');
});

test('a key added with a delay while in flight waits for that delay', async () => {
  const { clock, queue } = setUp();
  queue.add('a');
  await queue.next(open());
  queue.add('a', 500);
  queue.add('a', 900);
  await clock.advance(100);
  queue.done('a');
  assert.equal(await takeNow(queue), undefined);
  await clock.advance(400);
  assert.equal(await takeNow(queue), 'a');
});

test('a key that was not added again is removed when done, and calling done twice is harmless', async () => {
  const { queue } = setUp();
  queue.add('a');
  await queue.next(open());
  queue.done('a');
  queue.done('a');
  queue.done('never seen');
  assert.equal(queue.waiting, 0);
});

test('forget removes a waiting key, and prevents another run of an in-flight key', async () => {
  const { clock, queue } = setUp();
  queue.add('waiting', 10);
  queue.add('working');
  await queue.next(open());
  queue.add('working');
  queue.forget('waiting');
  queue.forget('working');
  queue.done('working');
  await clock.advance(10);
  assert.deepEqual(queue.takeDue(), []);
});

test('two consumers get different keys, in the order in which they began to wait', async () => {
  const { queue } = setUp();
  const both = Promise.all([queue.next(open()), queue.next(open())]);
  queue.add('a');
  queue.add('b');
  assert.deepEqual(await both, ['a', 'b']);
});

test('an aborted consumer leaves no listener and no timer, and loses no key', async () => {
  const { clock, queue } = setUp();
  const controller = new AbortController();
  queue.add('a', 10);
  const taking = queue.next(controller.signal);
  assert.equal(clock.pendingTimers, 1);
  controller.abort(new Error('left'));
  await assert.rejects(taking, /left/);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  await clock.advance(10);
  assert.equal(await takeNow(queue), 'a');
});

test('an aborted consumer takes no key from the queue', async () => {
  const { queue } = setUp();
  queue.add('a');
  await assert.rejects(queue.next(AbortSignal.abort(new Error('early'))), /early/);
  assert.equal(queue.waiting, 1);
});

test('close releases consumers, drops waiting keys, and ends the queue', async () => {
  const { clock, queue } = setUp();
  queue.add('in work');
  await queue.next(open());
  queue.add('in work');
  const taking = queue.next(open());
  queue.add('a', 10);
  queue.close();
  assert.equal(await taking, undefined);
  assert.equal(await queue.next(open()), undefined);
  queue.done('in work');
  queue.add('b');
  assert.equal(queue.waiting, 0);
  assert.equal(clock.pendingTimers, 0);
});

test('a wall clock that jumps does not change due times', async () => {
  const { clock, queue } = setUp();
  queue.add('a', 1000);
  clock.jumpWall(3_600_000);
  assert.deepEqual(queue.takeDue(), []);
  clock.jumpWall(-7_200_000);
  await clock.advance(1000);
  assert.deepEqual(queue.takeDue(), ['a']);
});

test('with the real clock a key is never delivered early', async () => {
  const clock = realClock();
  const queue = new WorkQueue(clock);
  for (let i = 0; i < 20; i++) {
    const dueMs = clock.monotonicMs() + 1.3;
    queue.enqueue('a', 1.3);
    await queue.next(open());
    assert.ok(clock.monotonicMs() >= dueMs);
    queue.done('a');
  }
  queue.close();
});

test('rejects NaN as delay of a key', () => {
  assert.throws(() => setUp().queue.add('a', Number.NaN), { code: 'BUG' });
});

test('adding, moving and delivering a hundred thousand keys is fast', () => {
  const { queue } = setUp();
  const started = process.threadCpuUsage();
  for (let i = 0; i < 100_000; i++) queue.add(`${i}`, 1e6 - i);
  for (let i = 0; i < 100_000; i++) queue.enqueue(`${i}`, 0);
  assert.equal(queue.takeDue().length, 100_000);
  assert.ok(process.threadCpuUsage(started).user < 10e6);
});

/** A simple list with the behaviour of the queue, for comparison. */
class Model {
  waiting = new Map<string, number>();
  inWork = new Map<string, number | undefined>();

  ask(key: string, dueMs: number, overwrite: boolean): void {
    const place = this.inWork.has(key) ? this.inWork : this.waiting;
    const before = place.get(key);
    place.set(key, before === undefined || overwrite ? dueMs : Math.min(before, dueMs));
  }

  earliest(nowMs: number): number | undefined {
    const due = [...this.waiting.values()].filter((dueMs) => dueMs <= nowMs);
    return due.length === 0 ? undefined : Math.min(...due);
  }
}

test('the queue behaves like a list for any sequence of calls: no key in flight twice, none early, none lost', async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const step = fc.oneof(
    fc.record({ act: fc.constantFrom('add', 'enqueue'), key, ms: fc.nat(50) }),
    fc.record({ act: fc.constantFrom('done', 'forget'), key, ms: fc.constant(0) }),
    fc.record({ act: fc.constantFrom('advance', 'take'), key, ms: fc.nat(50) }),
  );
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const { clock, queue } = setUp();
    const model = new Model();
    for (const { act, key, ms } of steps) {
      const nowMs = clock.monotonicMs();
      if (act === 'add' || act === 'enqueue') {
        queue[act](key, ms);
        model.ask(key, nowMs + ms, act === 'enqueue');
      } else if (act === 'forget') {
        queue.forget(key);
        model.waiting.delete(key);
        if (model.inWork.has(key)) model.inWork.set(key, undefined);
      } else if (act === 'done') {
        queue.done(key);
        const again = model.inWork.get(key);
        model.inWork.delete(key);
        if (again !== undefined) model.waiting.set(key, again);
      } else if (act === 'advance') await clock.advance(ms);
      else {
        const expected = model.earliest(nowMs);
        const taken = await takeNow(queue);
        assert.equal(taken === undefined, expected === undefined);
        if (taken === undefined) continue;
        assert.equal(model.inWork.has(taken), false);
        assert.equal(model.waiting.get(taken), expected);
        model.waiting.delete(taken);
        model.inWork.set(taken, undefined);
      }
    }
    for (const [key, again] of model.inWork) {
      queue.done(key);
      if (again !== undefined) model.waiting.set(key, again);
    }
    await clock.advance(1000);
    assert.deepEqual(queue.takeDue().sort(), [...model.waiting.keys()].sort());
    assert.equal(clock.pendingTimers, 0);
  });
  await fc.assert(property, { numRuns: 200 });
});
