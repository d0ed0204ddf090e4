import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../../test/fakes/virtual-clock.ts';
import type { NodeEvent } from '../../../journal/index.ts';
import { collectLogs, MetricRegistry } from '../../../lib/index.ts';
import { createImageGc, ImageCollector } from './image-collector.ts';
import { ImageLeases } from './image-leases.ts';

test('collects unused images every five minutes, and logs consecutive failures from the second one on', async () => {
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
      isEnabled: true,
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

test("counts removed images with the Go kubelet's metric name", async () => {
  const clock = new VirtualClock();
  const metrics = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const { signal } = new AbortController();
  const cri = {
    listImages: async () => ({ images: [{ id: 'a', repoTags: [], repoDigests: [], size: 1n }] }),
    listContainers: async () => ({ containers: [] }),
    status: async () => ({ info: {} }),
    removeImage: async () => ({}),
  };
  const manager = createImageGc(
    { imageGc: { highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs: 0 } } as never,
    {
      cri,
      clock,
      logger: collectLogs(clock).logger,
      metrics,
      machine: { diskSpace: async () => undefined },
    } as never,
    { node: { event: () => {} }, leases: new ImageLeases() },
  );
  await manager?.deleteUnusedImages(signal);
  assert.match(await metrics.expose(signal), /^kubelet_image_garbage_collected_total\{reason="space"\} 1$/m);
});
