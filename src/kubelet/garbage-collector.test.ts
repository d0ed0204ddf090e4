import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelled, collectLogs, VirtualClock } from '../lib/index.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { NodeJournal } from './node-journal.ts';

function rig(collect: () => Promise<void> = async () => {}) {
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

test('garbage is collected every minute, and at once when there is some', async () => {
  const { clock, times, garbage } = rig();
  const end = new AbortController();
  const run = garbage.run(end.signal);
  await clock.advance(60_000);
  await clock.advance(10_000);
  garbage.collectSoon();
  garbage.collectSoon();
  await clock.advance(50_000);
  await clock.advance(10_000);
  end.abort(cancelled('the test ends'));
  await run;
  assert.deepEqual(times, [60_000, 70_000, 130_000]);
  assert.equal(clock.pendingTimers, 0);
});

test('what is asked for during a round is another round; a failure ends nothing, and is told once', async () => {
  const { clock, times, garbage, records, node } = rig(async () => {
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
  end.abort(cancelled('the test ends'));
  await run;
});
