import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle } from '../../test/fakes/virtual-clock.ts';
import { TypedEvents } from './typed-events.ts';

type Events = { started: { id: string }; stopped: number };

function setUp() {
  const failures: string[] = [];
  const events = new TypedEvents<Events>((error, event) => failures.push(`${event}: ${error}`));
  return { events, failures };
}

test('subscribers receive the payloads of an event in the order of subscription', () => {
  const { events } = setUp();
  const observed: string[] = [];
  events.on('started', ({ id }) => observed.push(`first ${id}`));
  events.on('started', ({ id }) => observed.push(`second ${id}`));
  events.on('stopped', (code) => observed.push(`stopped ${code}`));
  events.emit('started', { id: 'a' });
  events.emit('stopped', 0);
  assert.deepEqual(observed, ['first a', 'second a', 'stopped 0']);
});

test('an unsubscribed listener is not called, and the list of an event without listeners is removed', () => {
  const { events } = setUp();
  const link = events.on('stopped', () => assert.fail('left'));
  assert.equal(events.hasSubscribers('stopped'), true);
  link[Symbol.dispose]();
  link[Symbol.dispose]();
  assert.equal(events.hasSubscribers('stopped'), false);
  events.emit('stopped', 0);
});

test('a function subscribed twice is called twice and unsubscribed once', () => {
  const { events } = setUp();
  let calls = 0;
  const count = () => calls++;
  const first = events.on('stopped', count);
  events.on('stopped', count);
  events.emit('stopped', 0);
  first[Symbol.dispose]();
  events.emit('stopped', 0);
  assert.equal(calls, 3);
});

test('a subscriber that throws or rejects is reported and does not affect others', async () => {
  const { events, failures } = setUp();
  let reached = 0;
  events.on('stopped', () => {
    throw new Error('thrown');
  });
  events.on('stopped', async () => {
    throw new Error('rejected');
  });
  events.on('stopped', () => reached++);
  events.emit('stopped', 0);
  await settle();
  assert.equal(reached, 1);
  assert.deepEqual(failures, ['stopped: Error: thrown', 'stopped: Error: rejected']);
});

test('a reporter that throws does not affect the sender of an event', () => {
  const events = new TypedEvents<Events>(() => {
    throw new Error('reporter');
  });
  events.on('stopped', () => {
    throw new Error('subscriber');
  });
  events.emit('stopped', 0);
});

test('a subscriber added during the delivery of an event receives only later events, and one removed during the delivery is no longer called', () => {
  const { events } = setUp();
  const observed: string[] = [];
  events.on('stopped', () => {
    events.on('stopped', () => observed.push('late'));
    leaving[Symbol.dispose]();
  });
  const leaving = events.on('stopped', () => observed.push('left'));
  events.emit('stopped', 0);
  assert.deepEqual(observed, []);
});

test('a bounded subscription never blocks the sender and unsubscribes when closed', async () => {
  const { events } = setUp();
  const subscription = events.subscribe('stopped', { keep: 'each', capacity: 2 });
  for (let code = 0; code < 5; code++) events.emit('stopped', code);
  assert.equal(subscription.dropped, 3);
  assert.equal(await subscription.next(new AbortController().signal), 3);
  subscription.close();
  assert.equal(events.hasSubscribers('stopped'), false);
});

test('emitting an event without subscribers costs next to nothing', () => {
  const { events } = setUp();
  const started = process.threadCpuUsage();
  for (let i = 0; i < 1_000_000; i++) events.emit('stopped', i);
  assert.ok(process.threadCpuUsage(started).user < 10e6);
});
