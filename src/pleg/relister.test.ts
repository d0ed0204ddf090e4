import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryLister } from '../../test/fakes/memory-lister.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { abortable, collectLogs } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { PodCache } from './pod-cache.ts';
import { Relister } from './relister.ts';

const signal = new AbortController().signal;

/** A runtime that swallows every listing until told otherwise. */
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
  /** How long it took, and what came of it. */
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

test('an answer that gets lost costs a look at all pods little, and a slow runtime more and more time', async () => {
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

test('a runtime that refuses is not slow', async () => {
  const { runtime, relister, timed } = swallowed();
  const swallow = runtime.beforeList;
  runtime.beforeList = () => Promise.reject(new Error('away'));
  for (let round = 0; round < 5; round++)
    assert.equal(await timed(relister.relist(signal)), 'failed after 0 s');
  runtime.beforeList = swallow;
  assert.equal(await timed(relister.relist(signal)), 'failed after 15 s');
});

test('a look at one pod is given up like its inspection', async () => {
  const { relister, timed } = swallowed();
  assert.equal(await timed(relister.relistPod(podUid('a'), signal)), 'failed after 10 s');
});
