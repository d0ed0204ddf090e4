import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { MetricRegistry } from '../../lib/index.ts';
import type { Pod, PodJournal } from '../../pods/index.ts';
import { StartLatency } from './start-latency.ts';

const { signal } = new AbortController();
const known = { ready: false, restartCount: 0, image: '', imageID: '' };
const silent: PodJournal = { event() {}, step() {} };

function createHarness() {
  const clock = new VirtualClock();
  const registry = new MetricRegistry({ onError: assert.ifError });
  const starts = new StartLatency(clock, registry);
  const begunMs = clock.now();
  const at = (ms: number) => new Date(begunMs + ms).toISOString();
  const figure = async (name: string) => {
    const text = await registry.expose(signal);
    const value = (end: string) =>
      new RegExp(`^kubelet_pod_start_${name}_duration_seconds_${end} (.+)$`, 'm').exec(text)?.[1];
    return [value('count'), value('sum')];
  };
  return { clock, starts, journal: starts.journal(silent), at, figure };
}

function podAt(creationTimestamp: string, rest: Pick<Parameters<typeof aPod>[0] & object, 'spec'> = {}): Pod {
  const pod = aPod(rest);
  return { ...pod, metadata: { ...pod.metadata, creationTimestamp }, status: {} };
}

function runningAt(pod: Pod, startedAt: string, more: Pod['status'] = {}): Pod {
  const containerStatuses = [{ ...known, name: 'main', state: { running: { startedAt } } }];
  return { ...pod, status: { startTime: startedAt, phase: 'Running', ...more, containerStatuses } };
}

test('measures a pod start once, without image pulls and init containers', async () => {
  const { clock, starts, journal, at, figure } = createHarness();
  const pod = podAt(at(0), { spec: { initContainers: [{ name: 'init' }] } });
  starts.observe(pod);
  const { uid } = pod.metadata;
  await clock.advance(4_000);
  // Two concurrent pulls: from second 1 to 3, and from second 2 to 4.
  journal.step(uid, { stage: 'image', outcome: 'done', message: '', ms: 2_000 });
  journal.step(uid, { stage: 'image', outcome: 'done', message: '', ms: 3_000 });
  await clock.advance(6_000);
  const terminated = { exitCode: 0, startedAt: at(4_000), finishedAt: at(9_000) };
  const initContainerStatuses = [{ ...known, name: 'init', state: { terminated } }];
  starts.observe(runningAt(pod, at(9_500), { initContainerStatuses }));
  assert.deepEqual(await figure('total'), ['1', '10']);
  assert.deepEqual(await figure('sli'), ['1', '2']);
  starts.observe(runningAt(pod, at(9_500)));
  assert.deepEqual(await figure('total'), ['1', '10']);
  assert.equal(starts.size, 0);
});

test('ignores pods that started before their first observation, have finished or were deleted', async () => {
  const { starts, at, figure } = createHarness();
  starts.observeAll([runningAt(podAt(at(0)), at(0))]);
  assert.equal(starts.size, 0);
  const [ended, gone, missing] = [podAt(at(0)), podAt(at(0)), podAt(at(0))].map((pod, index) => ({
    ...pod,
    metadata: { ...pod.metadata, uid: `${pod.metadata.uid}${index}` as Pod['metadata']['uid'] },
  })) as [Pod, Pod, Pod];
  starts.observeAll([ended, gone, missing]);
  assert.equal(starts.size, 3);
  starts.observe({ ...ended, status: { phase: 'Failed' } });
  starts.remove(gone.metadata.uid);
  starts.observeAll([]);
  assert.equal(starts.size, 0);
  assert.deepEqual(await figure('total'), ['0', '0']);
});

test('measures the start of a pod with a hostPath volume in the total histogram, but not in the SLI histogram', async () => {
  const { starts, at, figure } = createHarness();
  const pod = podAt(at(0), { spec: { volumes: [{ name: 'data', hostPath: { path: '/data' } }] } });
  starts.observe(pod);
  starts.observe(runningAt(pod, at(0)));
  assert.deepEqual(await figure('total'), ['1', '0']);
  assert.deepEqual(await figure('sli'), ['0', '0']);
});
