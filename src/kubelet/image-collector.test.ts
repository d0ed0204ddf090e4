import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectLogs, VirtualClock } from '../lib/index.ts';
import { ImageCollector } from './image-collector.ts';
import type { NodeEvent } from './node-journal.ts';

test('every five minutes, and told from the second failure in a row on', async () => {
  const clock = new VirtualClock();
  const events: NodeEvent[] = [];
  const outcomes = ['fails', 'well', 'fails', 'fails', 'fails', 'well'];
  const ranAtMs: number[] = [];
  const controller = new AbortController();
  const running = new ImageCollector({
    clock,
    logger: collectLogs(clock).logger,
    node: { event: (event) => events.push(event) },
    manager: {
      isOn: true,
      detect: () => assert.fail('it is on'),
      collect: async () => {
        ranAtMs.push(clock.monotonicMs());
        if (outcomes.shift() === 'fails') throw new Error('the disk is read-only');
      },
    },
  }).run(controller.signal);
  await clock.advance(26 * 60_000);
  controller.abort(new Error('enough'));
  await running;
  assert.deepEqual(
    ranAtMs,
    [0, 1, 2, 3, 4, 5].map((round) => 10_000 + round * 300_000),
  );
  const event = { type: 'Warning', reason: 'ImageGCFailed', message: 'the disk is read-only' };
  assert.deepEqual(events, [event, event]);
  assert.equal(clock.pendingTimers, 0);
});
