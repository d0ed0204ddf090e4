import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLister } from '../../test/fakes/memory-lister.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { abortable, collectLogs } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { PodCache } from './pod-cache.ts';
import { Relister } from './relister.ts';

const signal = new AbortController().signal;

/** A runtime whose listings hang until released. */
function swallowed() {
  const clock = new VirtualClock();
  const runtime = new MemoryLister();
  runtime.set('a', 'main', 'running');
  runtime.beforeList = (inner) => abortable(new Promise<void>(() => {}), inner);
  const relister = new Relister({
    clock,
    log: collectLogs(clock).logger,
    runtime,
    cache: new PodCache(),
    deliver: () => true,
    changed: () => {},
    failed: () => {},
    limits: { listMs: 120_000, inspectMs: 10_000, inspections: 8 },
  });
  /** The duration and result of a relist. */
  const timed = async (work: Promise<string>) => {
    const startMs = clock.monotonicMs();
    let outcome: string | undefined;
    void work.then((answer) => {
      outcome = answer;
    });
    assert.ok(await clock.advanceUntil(() => outcome !== undefined, 600_000));
    return `${outcome} after ${Math.round((clock.monotonicMs() - startMs) / 1_000)} s`;
  };
  return { runtime, relister, timed };
}

test('a lost response delays a relist only a little, and a slow runtime gets more time', async () => {
  const { runtime, relister, timed } = swallowed();
  const outcomes: string[] = [];
  for (let round = 0; round < 5; round++) outcomes.push(await timed(relister.relist(signal)));
  assert.deepEqual(outcomes, [
    'failed after 15 s',
    'failed after 30 s',
    'failed after 60 s',
    'failed after 120 s',
    'failed after 120 s',
  ]);
  const swallow = runtime.beforeList;
  runtime.beforeList = async () => {};
  assert.equal(await timed(relister.relist(signal)), 'listed after 0 s');
  runtime.beforeList = swallow;
  assert.equal(await timed(relister.relist(signal)), 'failed after 15 s');
});

test('does not double the timeout for a runtime that fails fast', async () => {
  const { runtime, relister, timed } = swallowed();
  const swallow = runtime.beforeList;
  runtime.beforeList = () => Promise.reject(new Error('away'));
  for (let round = 0; round < 5; round++)
    assert.equal(await timed(relister.relist(signal)), 'failed after 0 s');
  runtime.beforeList = swallow;
  assert.equal(await timed(relister.relist(signal)), 'failed after 15 s');
});

test('limits a relist of one pod by the deadline of inspections', async () => {
  const { relister, timed } = swallowed();
  assert.equal(await timed(relister.relistPod(podUid('a'), signal)), 'failed after 10 s');
});
