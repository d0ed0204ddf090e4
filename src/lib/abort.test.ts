import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import {
  abortable,
  allOrAbort,
  cancelledError,
  LinkedController,
  onAbort,
  withAbortGrace,
  withDeadline,
} from './abort.ts';
import { isKind } from './errors.ts';

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
const never = () => new Promise<never>(() => {});

test('onAbort runs once when the signal is aborted', () => {
  const controller = new AbortController();
  const observed: unknown[] = [];
  onAbort(controller.signal, (reason) => observed.push(reason));
  controller.abort('why');
  controller.abort('again');
  assert.deepEqual(observed, ['why']);
  assert.equal(listeners(controller.signal), 0);
});

test('onAbort runs immediately for a signal that is already aborted', () => {
  const observed: unknown[] = [];
  using _link = onAbort(AbortSignal.abort('early'), (reason) => observed.push(reason));
  assert.deepEqual(observed, ['early']);
});

test('onAbort leaves no listener once disposed, and may be disposed twice', () => {
  const controller = new AbortController();
  const link = onAbort(controller.signal, () => assert.fail('disposed'));
  assert.equal(listeners(controller.signal), 1);
  link[Symbol.dispose]();
  link[Symbol.dispose]();
  assert.equal(listeners(controller.signal), 0);
  controller.abort();
});

test('aborting a linked controller does not abort its parent, and aborting the parent aborts its linked controllers', () => {
  const parent = new AbortController();
  using first = new LinkedController(parent.signal);
  using second = new LinkedController(parent.signal);
  first.abort('mine');
  assert.equal(parent.signal.aborted, false);
  parent.abort('all');
  assert.equal(first.signal.reason, 'mine');
  assert.equal(second.signal.reason, 'all');
});

test('a linked controller of an aborted parent starts aborted', () => {
  using child = new LinkedController(AbortSignal.abort('gone'));
  assert.equal(child.signal.reason, 'gone');
});

test('a thousand linked controllers leave no listener on their parent', () => {
  const parent = new AbortController();
  for (let i = 0; i < 1000; i++) {
    using _child = new LinkedController(parent.signal);
  }
  assert.equal(listeners(parent.signal), 0);
  parent.abort();
});

test('a disposed linked controller is not aborted with its parent', () => {
  const parent = new AbortController();
  const child = new LinkedController(parent.signal);
  child[Symbol.dispose]();
  parent.abort();
  assert.equal(child.signal.aborted, false);
});

test('abortable settles like the promise and removes its listener', async () => {
  const controller = new AbortController();
  assert.equal(await abortable(Promise.resolve(7), controller.signal), 7);
  await assert.rejects(abortable(Promise.reject(new Error('x')), controller.signal), /x/);
  assert.equal(listeners(controller.signal), 0);
});

test('abortable rejects with the reason when the abort comes first', async () => {
  const controller = new AbortController();
  const waiting = abortable(never(), controller.signal);
  const reason = cancelledError('stopping');
  controller.abort(reason);
  await assert.rejects(waiting, (error) => error === reason);
});

test('abortable rejects for a signal that is already aborted and ignores the later result of the promise', async () => {
  const { promise, reject } = Promise.withResolvers<void>();
  await assert.rejects(abortable(promise, AbortSignal.abort(cancelledError('early'))), /early/);
  reject(new Error('late'));
  await settle();
});

test('work within its deadline returns its result and leaves no timer and no listener', async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const result = await withDeadline({ clock, ms: 10, what: 'x' }, async () => 'done', parent.signal);
  assert.equal(result, 'done');
  assert.equal(clock.pendingTimers, 0);
  assert.equal(listeners(parent.signal), 0);
});

test('work that ignores its signal is abandoned at its deadline', async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const running = withDeadline({ clock, ms: 2000, what: 'stop the container' }, never, parent.signal);
  const failed = assert.rejects(
    running,
    (error) =>
      isKind(error, 'DeadlineExceeded') && /Cannot stop the container within 2000 ms/.test(String(error)),
  );
  await clock.advance(2000);
  await failed;
  assert.equal(clock.pendingTimers, 0);
  assert.equal(listeners(parent.signal), 0);
});

test('work receives the abort of its parent, with its reason', async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  let observed: AbortSignal | undefined;
  const work = (signal: AbortSignal) => {
    observed = signal;
    return never();
  };
  const failed = assert.rejects(withDeadline({ clock, ms: 10, what: 'x' }, work, parent.signal), /stopping/);
  parent.abort(cancelledError('stopping'));
  await failed;
  assert.equal(observed?.aborted, true);
  assert.equal(clock.pendingTimers, 0);
});

test('work is not started when the parent is already aborted', async () => {
  const clock = new VirtualClock();
  const work = () => assert.fail('started');
  await assert.rejects(
    withDeadline({ clock, ms: 10, what: 'x' }, work, AbortSignal.abort(cancelledError('gone'))),
    /gone/,
  );
  assert.equal(clock.pendingTimers, 0);
});

test('work that throws synchronously leaves no timer', async () => {
  const clock = new VirtualClock();
  const work = () => {
    throw new Error('thrown synchronously');
  };
  await assert.rejects(
    withDeadline({ clock, ms: 10, what: 'x' }, work, new AbortController().signal),
    /thrown synchronously/,
  );
  assert.equal(clock.pendingTimers, 0);
});

test('the first failure of concurrent work under a deadline aborts the rest', async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const work = (signal: AbortSignal) =>
    Promise.all([
      Promise.reject(new Error('first operation failed')),
      withDeadline({ clock, ms: 1000, what: 'y' }, never, signal),
    ]);
  await assert.rejects(
    withDeadline({ clock, ms: 10, what: 'x' }, work, parent.signal),
    /first operation failed/,
  );
  await settle();
  assert.equal(clock.pendingTimers, 0);
});

test('the first failure of allOrAbort aborts the rest, and no listener is left', async () => {
  const parent = new AbortController();
  const observed: boolean[] = [];
  const both = (signal: AbortSignal) =>
    Promise.all([Promise.reject(new Error('first operation failed')), abortable(never(), signal)]).finally(
      () => {
        onAbort(signal, () => observed.push(true));
      },
    );
  await assert.rejects(allOrAbort(both, parent.signal), /first operation failed/);
  assert.deepEqual(observed, [true]);
  assert.equal(listeners(parent.signal), 0);
});

test('work that ends within its abort grace is not aborted and leaves no listener', async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  let observed: AbortSignal | undefined;
  const work = (signal: AbortSignal) => {
    observed = signal;
    return promise;
  };
  const running = withAbortGrace({ clock, ms: () => 2000 }, work, parent.signal);
  parent.abort(cancelledError('stopping'));
  await clock.advance(1999);
  assert.equal(observed?.aborted, false);
  resolve('done');
  assert.equal(await running, 'done');
  assert.equal(clock.pendingTimers, 0);
});

test('work that exceeds its abort grace is aborted with the reason of the parent', async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const work = (signal: AbortSignal) => abortable(never(), signal);
  const failed = assert.rejects(withAbortGrace({ clock, ms: () => 2000 }, work, parent.signal), /stopping/);
  parent.abort(cancelledError('stopping'));
  await clock.advance(2000);
  await failed;
  assert.equal(clock.pendingTimers, 0);
  assert.equal(listeners(parent.signal), 0);
});

test('work with an abort grace is not started when the parent is already aborted', async () => {
  const clock = new VirtualClock();
  const work = () => assert.fail('started');
  await assert.rejects(
    withAbortGrace({ clock, ms: () => 1 }, work, AbortSignal.abort(cancelledError('gone'))),
    /gone/,
  );
  assert.equal(clock.pendingTimers, 0);
});
