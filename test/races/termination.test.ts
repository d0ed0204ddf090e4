import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodStatus } from '../../src/kinds/index.ts';
import type { PodUid } from '../../src/pods/index.ts';
import type { StatusFn } from '../../src/workers/index.ts';
import { images } from '../simulation/sketch.ts';
import { apiPod, manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

const apiPods = { settings: { apiPods: 'expected' } } as const;

function failedAs(reason: string): StatusFn {
  return (status) => ({ ...status, phase: 'Failed', reason });
}

/** The timeout in seconds of each StopContainer call. */
function graces(node: RaceNode): readonly number[] {
  return node.calls.flatMap(({ method, request }) =>
    method === 'stopContainer' ? [Number(request['timeout'])] : [],
  );
}

it('orphan terminating, runtime down 60s: the pod is removed at most 33s after the runtime is back', async () => {
  await using node = await RaceNode.start();
  await node.runsStatic('web', manifest('web', { graceSeconds: 20, onTerm: 'ignore' }));
  node.remove('web');
  await node.pass(5_000);
  node.world.runtime.goDown({ state: 'kept' });
  await node.pass(60_000);
  assert.ok(!(await node.isClean()));
  node.world.runtime.comeUp();
  const tookMs = await node.becomesClean(33_000);
  assert.ok(tookMs <= 33_000);
});

it('kill then sync before the worker wakes: the pod is still killed', async () => {
  await using node = await RaceNode.start(apiPods);
  const pod = apiPod('web', 'uid-web');
  await node.api(pod);
  await node.runs('uid-web');
  await node.pass(1_000);
  const { workers } = node.kubelet.control;
  workers.updatePod({ updateType: 'kill', pod });
  workers.updatePod({ updateType: 'sync', pod });
  assert.ok(workers.queries.isPodTerminationRequested(pod.metadata.uid));
  await node.until('it has stopped', () => node.running('uid-web').length === 0, 5_000);
  await node.pass(90_000);
  assert.equal(node.of('uid-web', 'container-started').length, 1);
  assert.ok(workers.queries.shouldPodBeFinished(pod.metadata.uid));
});

it('evict, shorter delete, longer override: the grace period only gets shorter, and the last statusFn is used', async () => {
  await using node = await RaceNode.start(apiPods);
  const shape = { graceSeconds: 60, onTerm: 'ignore' } as const;
  const pod = apiPod('web', 'uid-web', shape);
  await node.api(pod);
  await node.runs('uid-web');
  await node.pass(1_000);
  const {
    control: { workers },
    state: { statuses },
  } = node.kubelet;
  const startMs = node.nowMs;
  workers.updatePod({ updateType: 'kill', pod, kill: { evict: true, statusFn: failedAs('Evicted') } });
  await node.pass(2_000);
  const deletion = { deletionTimestamp: '2026-01-01T00:00:10Z', deletionGracePeriodSeconds: 10 };
  await node.api(apiPod('web', 'uid-web', { ...shape, metadata: deletion }));
  await node.pass(1_000);
  const longer = { graceOverrideSeconds: 100, statusFn: failedAs('Preempted') };
  workers.updatePod({ updateType: 'kill', pod, kill: longer });
  await node.until('it has stopped', () => node.running('uid-web').length === 0, 30_000);
  const tookMs = node.nowMs - startMs;
  assert.ok(tookMs > 9_000 && tookMs < 14_000, `it took ${tookMs} ms`);
  assert.deepEqual(graces(node), [60, 10]);
  await node.pass(2_000);
  assert.equal(statuses.getPodStatus(pod.metadata.uid)?.reason, 'Preempted');
});

it('create for a terminating UID: no second worker is created', async () => {
  await using node = await RaceNode.start(apiPods);
  const pod = apiPod('web', 'uid-web', { graceSeconds: 10, onTerm: 'ignore' });
  await node.api(pod);
  await node.runs('uid-web');
  await node.pass(1_000);
  await node.api();
  await node.pass(1_000);
  await node.api(pod);
  await node.pass(1_000);
  assert.equal(node.kubelet.control.workers.sizes.pods, 1);
  assert.ok(node.kubelet.control.workers.queries.isPodTerminationRequested(pod.metadata.uid));
  assert.equal(node.of('uid-web', 'container-started').length, 1);
  await node.until('it runs anew', () => node.of('uid-web', 'container-started').length === 2);
  const [ended, begun] = [
    node.of('uid-web', 'container-exited')[0],
    node.of('uid-web', 'container-started')[1],
  ];
  assert.ok((ended?.atMs ?? 0) < (begun?.atMs ?? 0));
  assert.equal(node.kubelet.control.workers.sizes.pods, 1);
});

it('evict races natural completion: a published terminal phase never flips', async () => {
  const phases = new Set<string>();
  for (let offsetMs = -30; offsetMs <= 60; offsetMs += 6) {
    await using node = await RaceNode.start(apiPods);
    const pod = apiPod('job', 'uid-job', { restartPolicy: 'Never', runMs: 3_000 });
    const published: (string | undefined)[] = [];
    node.kubelet.state.statuses.onChange(({ after }) => published.push(after.phase));
    await node.api(pod);
    const startedMs = await node.runs('uid-job').then(() => node.nowMs);
    await node.pass(startedMs + 3_000 + offsetMs - node.nowMs);
    node.kubelet.control.workers.updatePod({
      updateType: 'kill',
      pod,
      kill: { evict: true, statusFn: failedAs('Evicted') },
    });
    await node.until('it is over', () => node.kubelet.state.statuses.isFinished(pod.metadata.uid));
    const ends = new Set(published.filter((phase) => phase === 'Failed' || phase === 'Succeeded'));
    assert.equal(ends.size, 1, `${offsetMs} ms: ${published.join(', ')}`);
    for (const end of ends) phases.add(end ?? '');
  }
  assert.deepEqual([...phases].sort(), ['Failed', 'Succeeded'], 'the times did not meet the race');
});

it('activeDeadline passes while the worker is busy: the pod fails with DeadlineExceeded and is killed with its grace period', async () => {
  await using node = await RaceNode.start();
  const containers = ['app', 'late'].map((name) => ({
    name,
    image: name === 'app' ? images.present : images.pulled,
    command: ['app', '{"onTerm": "ignore"}'],
  }));
  const busy = Promise.withResolvers<void>();
  node.toll = { before: ({ method }) => (method === 'pullImage' ? busy.promise : undefined) };
  node.write('web', manifest('web', { graceSeconds: 7, spec: { activeDeadlineSeconds: 5, containers } }));
  const uid = await node.uidOf('web');
  await node.runs(uid);
  assert.deepEqual(node.running(uid), ['app']);
  await node.until('it has failed', () => node.phase(uid) === 'Failed', 6_000);
  const failedMs = node.nowMs;
  await node.until('it has stopped', () => node.running(uid).length === 0);
  assert.ok(node.nowMs - failedMs > 6_000 && node.nowMs - failedMs < 12_000);
  busy.resolve();
  const { reason, message } = node.kubelet.state.statuses.getPodStatus(uid) ?? {};
  assert.equal(reason, 'DeadlineExceeded');
  assert.equal(message, 'Pod was active on the node longer than the specified deadline');
  assert.ok(graces(node).every((seconds) => seconds === 7) && graces(node).length > 0);
  assert.deepEqual(
    node.events(uid).filter((each) => each === 'DeadlineExceeded'),
    ['DeadlineExceeded'],
  );
  await node.pass(120_000);
  assert.deepEqual(node.running(uid), []);
});

it('stale runtime-only kill after terminated: the kill is ignored', async () => {
  await using node = await RaceNode.start(apiPods);
  const spec = { volumes: [{ name: 'scratch', emptyDir: {} }] };
  const pod = apiPod('job', 'uid-job', { restartPolicy: 'Never', runMs: 2_000, spec });
  const { uid } = pod.metadata;
  const cleaned = Promise.withResolvers<void>();
  let cleanups = 0;
  node.toll = {
    before: ({ part, method, args }) => {
      if (
        part !== 'files' ||
        method !== 'remove' ||
        !String(args[0]).includes('volumes/kubernetes.io~empty-dir')
      )
        return undefined;
      cleanups++;
      return cleaned.promise;
    },
  };
  await node.api(pod);
  const { workers } = node.kubelet.control;
  await node.until('it is terminated', () => workers.queries.isPodKnownTerminated(uid));
  await node.until('it cleans up', () => cleanups > 0);
  const before = { calls: node.calls.length, status: statusOf(node, uid) };
  const runningPod = { uid, name: 'job', namespace: 'default', sandboxes: [], containers: [] };
  let reported = 0;
  const kill = { graceOverrideSeconds: 1, done: () => void reported++ };
  workers.updatePod({ updateType: 'kill', runningPod, kill });
  assert.equal(reported, 1);
  cleaned.resolve();
  await node.until('it is finished', () => workers.queries.shouldPodBeFinished(uid));
  // Sends the stale kill again after the pod is finished.
  workers.updatePod({ updateType: 'kill', runningPod, kill });
  await node.pass(30_000);
  assert.deepEqual([reported, cleanups], [2, 1]);
  assert.equal(node.calls.length, before.calls);
  assert.deepEqual(statusOf(node, uid)?.phase, before.status?.phase);
  assert.equal(workers.sizes.pods, 1);
});

function statusOf(node: RaceNode, uid: PodUid): PodStatus | undefined {
  return node.kubelet.state.statuses.getPodStatus(uid);
}
