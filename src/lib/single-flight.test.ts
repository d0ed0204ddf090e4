import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { settle } from '../../test/fakes/virtual-clock.ts';
import { SingleFlight } from './single-flight.ts';

const open = () => new AbortController().signal;

test('concurrent callers with the same key share one run', async () => {
  const flights = new SingleFlight<string, number>();
  let runs = 0;
  const work = async () => ++runs;
  const signal = open();
  const results = await Promise.all([flights.run('a', work, signal), flights.run('a', work, signal)]);
  assert.deepEqual(results, [1, 1]);
  assert.equal(await flights.run('a', work, signal), 2);
  assert.equal(flights.size, 0);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a failure reaches every caller and is not cached', async () => {
  const flights = new SingleFlight<string, number>();
  const fail = () => {
    throw new Error('x');
  };
  const results = await Promise.allSettled([flights.run('a', fail, open()), flights.run('a', fail, open())]);
  assert.deepEqual(
    results.map((result) => result.status),
    ['rejected', 'rejected'],
  );
  assert.equal(await flights.run('a', async () => 7, open()), 7);
});

test('a run continues while at least one caller waits, and is aborted with its last caller', async () => {
  const flights = new SingleFlight<string, number>();
  const observed: AbortSignal[] = [];
  const work = (signal: AbortSignal) => {
    observed.push(signal);
    return new Promise<number>(() => {});
  };
  const [first, second] = [new AbortController(), new AbortController()];
  const both = [flights.run('a', work, first.signal), flights.run('a', work, second.signal)];
  await settle();
  first.abort(new Error('first caller aborted'));
  await assert.rejects(both[0] ?? Promise.resolve(), /first caller aborted/);
  assert.equal(observed[0]?.aborted, false);
  second.abort(new Error('second caller aborted'));
  await assert.rejects(both[1] ?? Promise.resolve(), /second caller aborted/);
  assert.equal(observed[0]?.aborted, true);
  assert.equal(flights.size, 0);
});

test('a completed run is not aborted', async () => {
  const flights = new SingleFlight<string, AbortSignal>();
  const signal = await flights.run('a', async (inner) => inner, open());
  await settle();
  assert.equal(signal.aborted, false);
});

test('a failed run aborts the operations that it started concurrently', async () => {
  const flights = new SingleFlight<string, number>();
  let observed: AbortSignal | undefined;
  const work = async (signal: AbortSignal) => {
    observed = signal;
    throw new Error('one of two failed');
  };
  await assert.rejects(flights.run('a', work, open()), /one of two failed/);
  await settle();
  assert.equal(observed?.aborted, true);
});

test('a call after the last abort starts a new run', async () => {
  const flights = new SingleFlight<string, number>();
  const leaving = new AbortController();
  const hanging = flights.run('a', () => new Promise<number>(() => {}), leaving.signal);
  leaving.abort(new Error('left'));
  await assert.rejects(hanging, /left/);
  assert.equal(await flights.run('a', async () => 2, open()), 2);
});

test('an aborted signal starts no run', async () => {
  const flights = new SingleFlight<string, number>();
  const never = () => assert.fail('started');
  await assert.rejects(flights.run('a', never, AbortSignal.abort(new Error('early'))), /early/);
});
