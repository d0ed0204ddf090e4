import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import type { Pod, PodStep } from '../pods/index.ts';
import type { BusyWorker } from './pod-workers.ts';
import { Watchdog } from './watchdog.ts';

function createHarness() {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const steps: PodStep[] = [];
  const counts: string[] = [];
  const environment = { desired: [] as readonly Pod[], busy: [] as readonly BusyWorker[], hasWorker: true };
  const dog = new Watchdog({
    clock,
    logger,
    journal: { event: () => {}, step: (_uid, step) => steps.push(step) },
    desiredPods: () => environment.desired,
    workers: { has: () => environment.hasWorker, busyWorkers: () => environment.busy },
    observe: ({ busy, missing }) => counts.push(`${busy} ${missing}`),
  });
  const messages = () => [...records].map(({ message }) => message);
  return { clock, dog, world: environment, steps, counts, messages };
}

test('reports a busy pod worker once, and its recovery', () => {
  const { dog, world, steps, counts, messages } = createHarness();
  const { uid } = aPod().metadata;
  world.busy = [{ uid, name: 'web_default', state: 'syncing', busyMs: 301_500 }];
  dog.check();
  dog.check();
  world.busy = [];
  dog.check();
  dog.check();
  assert.deepEqual(
    steps.map(({ stage, outcome, message }) => `${stage} ${outcome}: ${message}`),
    ['worker failed: its sync (syncing) has taken 5m1.5s so far', 'worker done: its sync is no longer stuck'],
  );
  assert.deepEqual(messages(), ['Pod sync is stuck', 'Pod sync is no longer stuck']);
  assert.deepEqual(counts, ['1 0', '1 0', '0 0', '0 0']);
});

test('reports a desired pod without a worker after thirty seconds', async () => {
  const { clock, dog, world, steps, counts } = createHarness();
  world.desired = [aPod()];
  world.hasWorker = false;
  const end = new AbortController();
  const run = dog.run(end.signal);
  await clock.advance(35_000);
  assert.equal(steps.length, 0);
  await clock.advance(10_000);
  assert.equal(steps[0]?.message, 'it is desired, but has had no worker for over 30s');
  assert.equal(counts.at(-1), '0 1');
  world.hasWorker = true;
  await clock.advance(5_000);
  assert.deepEqual([steps.length, counts.at(-1)], [2, '0 0']);
  end.abort(new Error('test ended'));
  await run;
  assert.equal(clock.pendingTimers, 0);
});
