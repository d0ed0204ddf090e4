import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { NodeJournal } from '../../journal/index.ts';
import { cancelledError, collectLogs } from '../../lib/index.ts';
import { GarbageCollector } from './garbage-collector.ts';

function createHarness(collect: () => Promise<void> = async () => {}) {
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const times: number[] = [];
  const startMs = clock.monotonicMs();
  const node = new NodeJournal({ clock, logger, nodeName: 'n' });
  const garbage = new GarbageCollector({
    clock,
    node,
    async collect() {
      times.push(clock.monotonicMs() - startMs);
      await collect();
    },
  });
  return { clock, times, garbage, records, node };
}

test('collects garbage every minute, and immediately when requested', async () => {
  const { clock, times, garbage } = createHarness();
  const end = new AbortController();
  const run = garbage.run(end.signal);
  await clock.advance(60_000);
  await clock.advance(10_000);
  garbage.collectSoon();
  garbage.collectSoon();
  await clock.advance(50_000);
  await clock.advance(10_000);
  end.abort(cancelledError('the test ends'));
  await run;
  assert.deepEqual(times, [60_000, 70_000, 130_000]);
  assert.equal(clock.pendingTimers, 0);
});

test('a request during a garbage collection causes another collection; a failed collection is logged once and does not end the loop', async () => {
  const { clock, times, garbage, records, node } = createHarness(async () => {
    if (times.length === 1) garbage.collectSoon();
    if (times.length < 3) throw new Error('busy');
  });
  const end = new AbortController();
  const run = garbage.run(end.signal);
  await clock.advance(60_000);
  assert.deepEqual(times, [60_000, 60_000]);
  assert.equal([...records].length, 1);
  await clock.advance(60_000);
  await clock.advance(60_000);
  assert.deepEqual(
    node
      .story()
      .entries.map((entry) => (entry.is === 'event' ? `${entry.reason}: ${entry.message}` : entry.message)),
    ['ContainerGCFailed: busy', 'Dead containers are removed again'],
  );
  end.abort(cancelledError('the test ends'));
  await run;
});

test('collectNow waits for the running collection, then collects and rejects with its failure', async () => {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const story: string[] = [];
  const garbage = new GarbageCollector({
    clock,
    node: new NodeJournal({ clock, logger, nodeName: 'n' }),
    async collect(scope, signal) {
      story.push(`begin ${scope}`);
      await clock.sleep(1_000, signal);
      story.push(`end ${scope}`);
      if (scope === 'terminated-pods-too') throw new Error('a dead container cannot be removed');
    },
  });
  const end = new AbortController();
  const run = garbage.run(end.signal);
  garbage.collectSoon();
  await clock.advance(500);
  const now = assert.rejects(
    garbage.collectNow('terminated-pods-too', end.signal),
    /a dead container cannot be removed/,
  );
  const then = garbage.collectNow('deleted-pods', end.signal);
  await clock.advance(4_000);
  await Promise.all([now, then]);
  assert.deepEqual(
    story,
    ['deleted-pods', 'terminated-pods-too', 'deleted-pods'].flatMap((scope) => [
      `begin ${scope}`,
      `end ${scope}`,
    ]),
  );
  end.abort(cancelledError('the test ends'));
  await run;
});
