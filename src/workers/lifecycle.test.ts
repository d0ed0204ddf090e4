import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MetricRegistry } from '../lib/index.ts';
import { type Lifecycle, PodLifecycle, type Transition } from './lifecycle.ts';
import { workerMetrics } from './metrics.ts';

const states: readonly Lifecycle[] = [
  { state: 'syncing' },
  { state: 'terminating', sinceMs: 1, graceSeconds: 30, progress: 'requested' },
  { state: 'terminated', sinceMs: 2 },
  { state: 'finished', sinceMs: 3 },
];
const rank = (state: string) => states.findIndex((each) => each.state === state);

test('never moves a pod lifecycle backwards, and changes nothing on a rejected transition', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...states)), (asked) => {
      const rejected: Transition[] = [];
      const entered: Transition[] = [];
      const lifecycle = new PodLifecycle(
        { state: 'syncing' },
        {
          entered: (transition) => entered.push(transition),
          rejected: (transition) => rejected.push(transition),
        },
      );
      for (const next of asked) {
        const before = lifecycle.current;
        const taken = lifecycle.enter(next, 'a test');
        assert.equal(lifecycle.current, taken ? next : before);
        assert.ok(rank(lifecycle.state) >= rank(before.state));
      }
      assert.equal(entered.length + rejected.length, asked.length);
    }),
  );
});

test('counts valid and rejected lifecycle transitions', async () => {
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const lifecycle = new PodLifecycle({ state: 'terminated', sinceMs: 0 }, workerMetrics(registry));
  lifecycle.enter({ state: 'syncing' }, 'a mistake');
  lifecycle.enter({ state: 'finished', sinceMs: 5 }, 'it is over');
  const text = await registry.expose(new AbortController().signal);
  assert.match(text, /kubeling_pod_worker_refused_transitions_total\{from="terminated",to="syncing"\} 1/);
  assert.match(text, /kubeling_pod_worker_transitions_total\{from="terminated",to="finished"\} 1/);
});

test('only shortens the grace period, and only that of a terminating pod', () => {
  const quiet = { entered: () => {}, rejected: () => {} };
  const lifecycle = new PodLifecycle({ state: 'syncing' }, quiet);
  lifecycle.shrinkGrace(5);
  assert.equal(lifecycle.graceSeconds, undefined);
  lifecycle.enter({ state: 'terminating', sinceMs: 0, graceSeconds: 30, progress: 'requested' }, 'a test');
  for (const [asked, expected] of [
    [40, 30],
    [10, 10],
    [20, 10],
  ] as const) {
    lifecycle.shrinkGrace(asked);
    assert.equal(lifecycle.graceSeconds, expected);
  }
});
