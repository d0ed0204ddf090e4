import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectGarbage, processCpuMs, reclaimMemory } from './reclaim-memory.ts';

function start() {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const harness = { clock, cpuMs: 0, costMs: 0, collected: [] as number[] };
  const collect = () => {
    harness.cpuMs += harness.costMs;
    harness.collected.push(clock.monotonicMs());
  };
  const running = reclaimMemory({ clock, cpuMs: () => harness.cpuMs, collect }, stop.signal);
  const started = clock.monotonicMs();
  return {
    rig: harness,
    seconds: () => harness.collected.map((ms) => (ms - started) / 1_000),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      assert.equal(clock.pendingTimers, 0);
    },
  };
}

test('collects garbage once when the process becomes idle after work', async () => {
  await using node = start();
  node.rig.cpuMs = 2_000;
  await node.rig.clock.advance(5_000);
  assert.deepEqual(node.seconds(), [], 'it has worked until now');
  await node.rig.clock.advance(5_000);
  assert.deepEqual(node.seconds(), [10]);
  await node.rig.clock.advance(3_600_000);
  assert.deepEqual(node.seconds(), [10]);
});

test('does not collect garbage while the process is busy', async () => {
  await using node = start();
  for (let turn = 0; turn < 100; turn++) {
    node.rig.cpuMs += 200;
    await node.rig.clock.advance(5_000);
  }
  assert.deepEqual(node.seconds(), []);
});

test('adds up small amounts of work until a collection is due', async () => {
  await using node = start();
  for (let turn = 0; turn < 60; turn++) {
    node.rig.cpuMs += 50;
    await node.rig.clock.advance(5_000);
  }
  assert.deepEqual(node.seconds(), [50, 100, 150, 200, 250, 300]);
});

test('requires more work before the next collection after an expensive one', async () => {
  await using node = start();
  node.rig.costMs = 40;
  for (let turn = 0; turn < 120; turn++) {
    node.rig.cpuMs += 50;
    await node.rig.clock.advance(5_000);
  }
  assert.deepEqual(node.seconds(), [50, 170, 290, 410, 530]);
});

test('collects garbage after little work when the process is idle for a long time', async () => {
  await using node = start();
  node.rig.costMs = 100;
  const burst = async (workMs: number) => {
    node.rig.cpuMs += workMs;
    await node.rig.clock.advance(10 * 60_000);
  };
  await burst(2_000);
  assert.deepEqual(node.seconds(), [10]);
  await burst(900);
  assert.deepEqual(node.seconds(), [10], 'not worth it');
  await burst(600);
  assert.deepEqual(node.seconds(), [10, 1_235]);
});

test('waits at least half a minute between two collections after bursts of work', async () => {
  await using node = start();
  for (let burst = 0; burst < 6; burst++) {
    node.rig.cpuMs += 2_000;
    await node.rig.clock.advance(10_000);
  }
  assert.deepEqual(node.seconds(), [10, 40]);
});

test('collects garbage and measures the CPU time of the process', () => {
  const before = processCpuMs();
  collectGarbage();
  assert.ok(processCpuMs() >= before);
});

test('treats little work every ten seconds as idle', async () => {
  await using node = start();
  node.rig.costMs = 100;
  node.rig.cpuMs += 2_000;
  await node.rig.clock.advance(10_000);
  for (let turn = 0; turn < 60; turn++) {
    node.rig.cpuMs += 40;
    await node.rig.clock.advance(10_000);
  }
  assert.deepEqual(node.seconds(), [10, 255, 505]);
});
