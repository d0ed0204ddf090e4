import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Pod } from '../../pods/index.ts';
import { TerminationOrder } from './termination-order.ts';

test('stops 8,000 sidecars serially within 1 s of CPU time', async () => {
  const names = Array.from({ length: 8_000 }, (_, index) => `s${index}`);
  const initContainers = names.map((name) => ({ name, image: 'i', restartPolicy: 'Always' }));
  const pod = { spec: { containers: [{ name: 'c', image: 'i' }], initContainers } } as never as Pod;
  const { signal } = new AbortController();
  const clock = new VirtualClock();
  const before = process.cpuUsage();
  const order = new TerminationOrder(pod, ['c', ...names]);
  const stopped: string[] = [];
  const waits = names.map(async (name) => {
    await order.waitForPredecessors(name, 30_000, clock, signal);
    stopped.push(name);
    order.stopped(name);
  });
  order.stopped('c');
  await Promise.all(waits);
  const { user, system } = process.cpuUsage(before);
  assert.deepEqual(stopped, names.toReversed());
  assert.ok(user + system < 1_000_000, `took ${(user + system) / 1_000} ms`);
});
