import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observedOf, podOf, runtimePodOf } from '../../test/fakes/pod-sketch.ts';
import { settle } from '../../test/fakes/virtual-clock.ts';
import { WorkerFixture } from '../../test/fakes/worker-fixture.ts';
import { abortable, isKind, KubelingError } from '../lib/index.ts';
import { fullNameOf, podUid } from '../pods/index.ts';
import { PodControl, type PodControlDeps } from './pod-control.ts';

const uid = podUid('uid-1');

test('moves a pod through all states after its creation and deletion, and then drops it', async () => {
  const node = new WorkerFixture();
  await node.running();
  assert.equal(node.state(), 'sync');
  node.workers.updatePod({ updateType: 'update', pod: podOf({ deletionGraceSeconds: 20 }) });
  assert.equal((await node.next('terminating')).graceSeconds, 20);
  await node.answer('terminating');
  await node.answer('terminated');
  assert.deepEqual(node.kinds(), ['sync', 'terminating', 'terminated']);
  assert.equal(node.workers.queries.shouldPodBeFinished(uid), true);
  assert.equal(node.workers.syncKnownPods([]).size, 0);
  assert.deepEqual(node.workers.sizes, { pods: 0, names: 0, loops: 0 });
  assert.equal(node.queue.waiting, 0);
  assert.deepEqual(
    node.transitions.map(({ from, to }) => `${from}>${to}`),
    ['syncing>terminating', 'terminating>terminated', 'terminated>finished'],
  );
  assert.deepEqual(node.worked, []);
});

test('passes no grace period for a pod that terminated by itself', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await node.answer('sync', 'terminal');
  assert.equal((await node.next('terminating')).graceSeconds, undefined);
  assert.equal(node.delays.get(uid), 0);
});

test('logs a repeated sync failure once, and logs again after a different failure or a success', async () => {
  const node = new WorkerFixture();
  for (const why of ['disk full', 'disk full', 'disk gone', undefined, 'disk gone']) {
    node.workers.updatePod({ updateType: 'create', pod: podOf() });
    const sync = await node.next('sync');
    if (why === undefined) sync.resolve();
    else sync.reject(new Error(why));
    await settle();
  }
  const reported = [...node.logs.records].filter(({ message }) => message.startsWith('Failed to sync pod'));
  assert.equal(reported.length, 3);
});

test('syncs a pod again if a sync was requested while its sync was running, but not if the request came before that sync began', async () => {
  const node = new WorkerFixture();
  node.queue.add(uid);
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await node.answer('sync');
  assert.deepEqual(node.queue.takeDue(), []);
  node.workers.updatePod({ updateType: 'sync', pod: podOf() });
  await node.next('sync');
  node.queue.add(uid);
  await node.answer('sync');
  assert.deepEqual(node.queue.takeDue(), [uid]);
});

test('coalesces updates during a sync into the newest one', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf(), startStamp: node.clock.stamp() });
  await node.next('sync');
  for (const graceSeconds of [1, 2, 3])
    node.workers.updatePod({ updateType: 'update', pod: podOf({ graceSeconds }) });
  await node.answer('sync');
  assert.equal((await node.next('sync')).pod?.spec.terminationGracePeriodSeconds, 3);
  assert.equal(node.calls.length, 2);
  await node.answer('sync');
  assert.equal(node.calls.length, 2);
  assert.deepEqual(node.worked, ['create']);
});

test('measures the latency of coalesced updates from the oldest one', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await node.next('sync');
  node.workers.updatePod({ updateType: 'update', pod: podOf(), startStamp: 5 });
  node.workers.updatePod({ updateType: 'sync', pod: podOf() });
  await node.answer('sync');
  await node.answer('sync');
  assert.deepEqual(node.worked, ['sync']);
});

test('syncs pods concurrently', async () => {
  const node = new WorkerFixture();
  for (const id of ['a', 'b', 'c'])
    node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: id, name: id }) });
  await settle();
  assert.deepEqual(
    node.held.map((call) => call.uid),
    ['a', 'b', 'c'],
  );
});

test('passes the mirror pod of an update to the syncer, and stores it', async () => {
  const node = new WorkerFixture();
  const mirrorPod = podOf({ uid: 'mirror' });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ source: 'file' }), mirrorPod });
  assert.equal((await node.next('sync')).mirrorPod, mirrorPod);
  await node.answer('sync');
  node.workers.updatePod({ updateType: 'sync', pod: podOf({ source: 'file' }) });
  assert.equal((await node.next('sync')).mirrorPod, undefined);
  assert.equal(node.workers.activePod(uid)?.mirrorPod, mirrorPod);
});

test('keeps the kill of a pod when a sync update follows before the worker runs', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  const done: string[] = [];
  node.workers.updatePod({ updateType: 'kill', pod, kill: { done: () => done.push('stopped') } });
  node.workers.updatePod({ updateType: 'sync', pod });
  await node.answer('terminating');
  assert.deepEqual(done, ['stopped']);
  await node.answer('terminated');
  assert.deepEqual(node.kinds(), ['sync', 'terminating', 'terminated']);
});

test('cancels a sync that waits for volumes when the pod is killed, and starts no container', async () => {
  const node = new WorkerFixture();
  const pod = podOf();
  node.workers.updatePod({ updateType: 'create', pod });
  const waiting = await node.next('sync');
  node.workers.updatePod({ updateType: 'kill', pod });
  assert.ok(isKind(waiting.signal.reason, 'Cancelled'));
  assert.equal((await node.next('terminating')).graceSeconds, 30);
  assert.deepEqual(node.kinds(), ['sync', 'terminating']);
  assert.equal(node.events.length, 0);
});

test('cancels the wait for the runtime cache when the pod is killed, and starts no container', async () => {
  const node = new WorkerFixture();
  const silent = new Promise<never>(() => {});
  node.observed.getNewerThan = (_uid, _stamp, signal) => abortable(silent, signal);
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await settle();
  node.observed.getNewerThan = async (id) => observedOf(id);
  node.workers.updatePod({ updateType: 'kill', pod: podOf() });
  await node.next('terminating');
  assert.deepEqual(node.kinds(), ['terminating']);
  assert.equal(node.events.length, 0);
});

test('starts no container when the pod is killed at the moment the runtime cache responds', async () => {
  const node = new WorkerFixture();
  const { promise, resolve } = Promise.withResolvers<ReturnType<typeof observedOf>>();
  node.observed.getNewerThan = () => promise;
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await settle();
  resolve(observedOf('uid-1'));
  node.workers.updatePod({ updateType: 'kill', pod: podOf() });
  await settle();
  assert.equal((await node.next('terminating')).signal.aborted, false);
  assert.deepEqual(node.kinds(), ['terminating']);
});

test('does not sync a pod that is removed before its worker runs', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  assert.equal(node.workers.syncKnownPods([]).size, 0);
  await settle();
  assert.deepEqual(node.calls, []);
});

test('only shortens the grace period after an eviction and two deletions, and uses the last statusFn', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  const evicted = () => ({ reason: 'Evicted' });
  const preempted = () => ({ reason: 'Preempting' });
  node.workers.updatePod({ updateType: 'kill', pod, kill: { evict: true, statusFn: evicted } });
  assert.equal((await node.next('terminating')).graceSeconds, 30);
  assert.equal((await node.next('terminating')).statusFn, evicted);
  node.workers.updatePod({ updateType: 'update', pod: podOf({ deletionGraceSeconds: 10 }) });
  assert.equal((await node.next('terminating')).graceSeconds, 10);
  const kill = { graceOverrideSeconds: 25, statusFn: preempted };
  node.workers.updatePod({ updateType: 'kill', pod: podOf({ deletionGraceSeconds: 10 }), kill });
  await node.fail('terminating', new Error('the pod has not stopped yet'));
  const last = await node.next('terminating');
  assert.deepEqual([last.graceSeconds, last.statusFn], [10, preempted]);
  assert.equal(node.workers.queries.shouldPodContentBeRemoved(uid), true);
});

test('raises a grace period of zero to one second, and ignores a longer grace period in a later kill', async () => {
  const node = new WorkerFixture();
  await node.running();
  const pod = podOf({ deletionGraceSeconds: 0 });
  node.workers.updatePod({ updateType: 'kill', pod, kill: { graceOverrideSeconds: 30 } });
  assert.equal((await node.next('terminating')).graceSeconds, 1);
});

test('cancels a running kill for a shorter grace period, also after the pod terminated by itself', async () => {
  const node = new WorkerFixture();
  const pod = podOf();
  node.workers.updatePod({ updateType: 'create', pod });
  await node.answer('sync', 'terminal');
  const first = await node.next('terminating');
  node.workers.updatePod({ updateType: 'kill', pod, kill: { graceOverrideSeconds: 40 } });
  assert.equal(first.signal.aborted, false);
  node.workers.updatePod({ updateType: 'kill', pod, kill: { graceOverrideSeconds: 5 } });
  assert.equal(first.signal.aborted, true);
  assert.equal((await node.next('terminating')).graceSeconds, 5);
});

test('creates no second worker for a terminating UID, and starts the pod again after it was dropped', async () => {
  const node = new WorkerFixture();
  const pod = await node.running({ source: 'file' });
  node.workers.updatePod({ updateType: 'kill', pod });
  await node.next('terminating');
  node.workers.updatePod({ updateType: 'create', pod });
  await settle();
  assert.equal(node.held.length, 1);
  assert.equal(node.workers.syncKnownPods([pod]).get(uid)?.state, 'terminating');
  await node.answer('terminating');
  await node.answer('terminated');
  assert.equal(node.workers.queries.shouldPodContentBeRemoved(uid), false);
  assert.equal(node.workers.syncKnownPods([pod]).size, 0);
  node.workers.updatePod({ updateType: 'create', pod });
  await node.next('sync');
});

test('syncs a pod with a reused UID only with an observation newer than the end of its predecessor', async () => {
  const node = new WorkerFixture();
  const pod = await node.running({ source: 'file' });
  node.workers.updatePod({ updateType: 'kill', pod });
  await node.answer('terminating');
  await node.answer('terminated');
  assert.equal(node.workers.syncKnownPods([]).size, 0);
  const ended = node.relists.at(-1)?.stamp ?? 0;
  node.workers.updatePod({ updateType: 'create', pod });
  await node.next('sync');
  assert.ok((node.asked.at(-1)?.stamp ?? Number.NEGATIVE_INFINITY) >= ended);
});

test('keeps the record of a finished pod that is still desired, and ignores further updates', async () => {
  const node = new WorkerFixture();
  const pod = podOf();
  node.workers.updatePod({ updateType: 'create', pod });
  await node.answer('sync', 'terminal');
  await node.answer('terminating');
  await node.answer('terminated');
  const done: string[] = [];
  node.workers.updatePod({ updateType: 'kill', pod, kill: { done: () => done.push('at once') } });
  node.workers.updatePod({ updateType: 'sync', pod });
  await settle();
  assert.deepEqual([node.calls.length, done], [3, ['at once']]);
  assert.equal(node.workers.syncKnownPods([pod]).get(uid)?.state, 'terminated');
});

test('terminates a pod once when an eviction races with its exit, and calls the callback of the eviction', async () => {
  const node = new WorkerFixture();
  const pod = podOf();
  node.workers.updatePod({ updateType: 'create', pod });
  const sync = await node.next('sync');
  const done: string[] = [];
  sync.resolve('terminal');
  node.workers.updatePod({
    updateType: 'kill',
    pod,
    kill: { evict: true, done: () => done.push('evicted') },
  });
  await node.answer('terminating');
  await node.answer('terminated');
  assert.deepEqual(done, ['evicted']);
  assert.deepEqual(node.kinds(), ['sync', 'terminating', 'terminated']);
  assert.deepEqual(node.refused, []);
});

test('counts Succeeded pods as terminated right after a restart, and still cleans them up', async () => {
  const node = new WorkerFixture();
  for (const id of ['a', 'b']) {
    node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: id, name: id, phase: 'Succeeded' }) });
    assert.equal(node.workers.queries.isPodKnownTerminated(podUid(id)), true);
  }
  await settle();
  assert.deepEqual(node.kinds(), ['terminated', 'terminated']);
});

test('stops a terminal pod before its clean-up if containers of it run, or may run', async () => {
  for (const get of [
    (id: string) => observedOf(id, 'running'),
    () => {
      throw new Error('unknown');
    },
  ]) {
    const node = new WorkerFixture();
    node.observed.get = get;
    node.workers.updatePod({ updateType: 'create', pod: podOf({ phase: 'Failed' }) });
    assert.equal(node.workers.queries.isPodKnownTerminated(uid), false);
    assert.equal((await node.next('terminating')).graceSeconds, 30);
  }
});

test('terminates a rejected pod immediately and cleans it up, or stops it first if it runs', async () => {
  const node = new WorkerFixture();
  node.workers.rejectPod(podOf());
  assert.equal(node.workers.queries.isPodKnownTerminated(uid), true);
  await node.answer('terminated');
  node.observed.get = (id) => observedOf(id, 'running');
  node.workers.rejectPod(podOf({ uid: 'b', name: 'b', source: 'file' }));
  await node.next('terminating', 'b');
  assert.deepEqual(node.kinds(), ['terminated', 'terminating']);
});

test('continues the termination of a static pod after a restart with the remaining grace period, and starts the pod again afterwards', async () => {
  const node = new WorkerFixture();
  const pod = podOf({ source: 'file' });
  node.observed.get = (id) => observedOf(id, 'running');
  node.workers.resumeTermination(pod, 7);
  assert.equal((await node.next('terminating')).graceSeconds, 7);
  await node.answer('terminating');
  await node.answer('terminated');
  assert.equal(node.workers.syncKnownPods([pod]).size, 0, 'forgotten, so that it can begin');
  node.workers.resumeTermination(podOf({ source: 'file', uid: 'b', name: 'b' }), 7);
  node.observed.get = (id) => observedOf(id);
  node.workers.resumeTermination(podOf({ source: 'file', uid: 'c', name: 'c' }), 7);
  await node.next('terminated', 'c');
  assert.deepEqual(node.kinds('c'), ['terminated'], 'nothing runs, but it may have left something');
});

for (const [what, more] of [
  ['that terminated by itself', {}],
  ['that is deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }],
] as const) {
  test(`does not restart an API pod ${what}, and keeps its record until no source has the pod`, async () => {
    const node = new WorkerFixture();
    const pod = podOf({});
    const ending = { ...pod, metadata: { ...pod.metadata, ...more } };
    node.observed.get = (id) => observedOf(id, 'running');
    node.workers.resumeTermination(ending, 7);
    await node.answer('terminating');
    await node.answer('terminated');
    assert.equal(node.workers.syncKnownPods([ending]).size, 1);
    assert.equal(node.workers.syncKnownPods([]).size, 0);
  });
}

test('treats a pod whose source is not ready as neither orphaned nor deleted', async () => {
  const node = new WorkerFixture({ areSourcesReadyFor: (id) => id !== 'other' });
  const other = podUid('other');
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'other' }) });
  await node.answer('sync');
  assert.equal(node.workers.syncKnownPods([]).get(other)?.orphan, false);
  assert.deepEqual(node.kinds(), ['sync']);
  const { queries } = new WorkerFixture({ areSourcesReadyFor: (id) => id !== 'other' }).workers;
  assert.equal(queries.shouldPodContentBeRemoved(other), false);
  node.workers.syncKnownPods([]);
  assert.equal(node.workers.queries.shouldPodContentBeRemoved(podUid('gone')), true);
  assert.equal(node.workers.queries.couldHaveRunningContainers(podUid('gone')), false);
});

test('uses the recorded remaining grace period to terminate a pod that only the runtime has', async () => {
  const node = new WorkerFixture();
  const kill = { graceOverrideSeconds: 12 };
  node.workers.updatePod({ updateType: 'kill', runningPod: runtimePodOf('uid-1'), kill });
  assert.equal((await node.next('terminating-runtime')).graceSeconds, 12);
});

test('uses a grace period of one second to kill a pod that only the runtime has, and then drops its record', async () => {
  const node = new WorkerFixture();
  const runningPod = runtimePodOf('uid-1');
  for (const updateType of ['create', 'update', 'sync'] as const)
    node.workers.updatePod({ updateType, runningPod });
  await settle();
  assert.deepEqual(node.calls, []);
  node.workers.updatePod({ updateType: 'kill', runningPod });
  assert.equal((await node.next('terminating-runtime')).graceSeconds, 1);
  assert.equal(node.asked.length, 0);
  const known = node.workers.syncKnownPods([]).get(uid);
  assert.deepEqual(known, { state: 'terminating', orphan: true, hasConfig: false, isStatic: false });
  await node.answer('terminating-runtime');
  await settle();
  assert.deepEqual(node.workers.sizes, { pods: 0, names: 0, loops: 0 });
});

test('uses the grace period of the pod spec to kill a runtime pod whose spec the worker has', async () => {
  const node = new WorkerFixture();
  await node.running();
  node.workers.updatePod({ updateType: 'kill', runningPod: runtimePodOf('uid-1') });
  const kill = await node.next('terminating');
  assert.deepEqual([kill.graceSeconds, kill.pod?.metadata.name], [30, 'web']);
});

test('ignores a stale runtime pod after the pod has terminated', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  node.workers.updatePod({ updateType: 'kill', pod });
  await node.answer('terminating');
  const cleanup = await node.next('terminated');
  node.workers.updatePod({ updateType: 'kill', runningPod: runtimePodOf('uid-1') });
  assert.equal(cleanup.signal.aborted, false);
  await node.answer('terminated');
  assert.deepEqual(node.kinds(), ['sync', 'terminating', 'terminated']);
});

test('calls the done callback immediately if the update does not kill the pod', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  const done: string[] = [];
  node.workers.updatePod({ updateType: 'sync', pod, kill: { done: () => done.push('nothing to wait for') } });
  assert.equal(done.length, 1);
});

test('does not sync with an observation that began before the previous sync ended', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  const sync = await node.next('sync');
  const before = node.clock.stamp();
  sync.requestRelist();
  await node.answer('sync');
  assert.equal(node.asked[0]?.stamp, Number.NEGATIVE_INFINITY);
  node.workers.updatePod({ updateType: 'sync', pod: podOf() });
  await settle();
  const expected = node.asked[1]?.stamp ?? 0;
  assert.ok(expected > before, 'only a look begun after the sync counts');
  assert.ok((node.relists[0]?.stamp ?? 0) > expected, 'the look that was asked for counts');
});

test('reuses the observation after a sync without actions, and requires a newer one after any other sync', async () => {
  const node = new WorkerFixture();
  const next = async (): Promise<number> => {
    node.workers.updatePod({ updateType: 'sync', pod: podOf() });
    await settle();
    return node.asked.at(-1)?.stamp ?? Number.NaN;
  };
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  (await node.next('sync')).requestRelist();
  await node.answer('sync');
  const acted = await next();
  await node.answer('sync');
  assert.equal(await next(), acted, 'nothing has changed since');
  await node.fail('sync', new Error('the result of the sync is unknown'));
  assert.ok((await next()) > acted);
});

test('uses the last observation to terminate a finished pod, and the observation after the stop to clean it up', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await node.answer('sync', 'terminal');
  const { observeNow, requestRelist, signal, resolve } = await node.next('terminating');
  assert.equal(node.asked.at(-1)?.stamp, Number.NEGATIVE_INFINITY, 'nothing was changed');
  assert.deepEqual(node.relists, []);
  requestRelist();
  await observeNow?.(signal);
  const looked = node.asked.at(-1)?.stamp;
  resolve();
  await node.next('terminated');
  assert.equal(node.asked.at(-1)?.stamp, looked);
  assert.deepEqual(node.relists, []);
});

test('does not reuse the observation made by a sync if the sync acts afterwards, or fails', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  node.workers.updatePod({ updateType: 'kill', pod });
  const first = await node.next('terminating');
  await first.observeNow?.(first.signal);
  await node.fail('terminating', new Error('a container still runs'));
  assert.equal(node.relists.length, 0);
  node.workers.updatePod({ updateType: 'sync', pod });
  const second = await node.next('terminating');
  assert.ok(
    (node.asked[2]?.stamp ?? 0) > (node.asked[1]?.stamp ?? 0),
    'newer than the end of the one that failed',
  );
  await second.observeNow?.(second.signal);
  second.requestRelist();
  second.resolve();
  await node.next('terminated');
  assert.equal(node.relists.length, 1);
  assert.ok((node.asked[4]?.stamp ?? 0) > (node.asked[3]?.stamp ?? 0));
});

test('requests no relist after a sync without actions, and one after every transition', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  assert.equal(node.relists.length, 0);
  node.workers.updatePod({ updateType: 'kill', pod });
  await node.answer('terminating');
  assert.equal(node.relists.length, 1);
});

test('records FailedSync and retries if the inspection of a pod fails repeatedly, and syncs other pods', async () => {
  const node = new WorkerFixture();
  node.observed.getNewerThan = async (id) => {
    if (id === 'uid-1') throw new Error('cannot inspect');
    return observedOf(id);
  };
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'b', name: 'b' }) });
  await settle();
  assert.deepEqual(node.kinds(), ['sync']);
  const { type, reason, message } = node.events[0] ?? {};
  assert.deepEqual(
    [type, reason, message],
    ['Warning', 'FailedSync', 'error determining status: cannot inspect'],
  );
  const delayMs = node.delays.get(uid) ?? 0;
  assert.ok(delayMs >= 10_000 && delayMs <= 15_000);
});

test('retries a sync that threw, and does not affect other pods', async () => {
  const node = new WorkerFixture();
  const pod = podOf();
  node.workers.updatePod({ updateType: 'create', pod });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'b', name: 'b' }) });
  await node.fail('sync', 'not even an error', 'uid-1');
  await node.answer('sync', 'not-terminal', 'b');
  node.workers.updatePod({ updateType: 'sync', pod });
  await node.answer('sync', 'not-terminal', 'uid-1');
  assert.deepEqual(node.kinds(uid), ['sync', 'sync']);
});

test('schedules the next sync by the result of the previous one', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  const after = async (error: unknown) => {
    node.workers.updatePod({ updateType: 'sync', pod });
    await node.fail('sync', error);
    return node.delays.get(uid) ?? -1;
  };
  const within = (value: number, min: number, max: number) =>
    assert.ok(value >= min && value <= max, `${value} is not in ${min}..${max}`);
  within(node.delays.get(uid) ?? -1, 60_000, 90_000);
  within(await after(new Error('network is not ready: no CNI')), 1_000, 1_500);
  within(await after(new Error('something')), 10_000, 15_000);
  const waiting = (retryAtMs: number) => new KubelingError('POD_SYNC', 'waits', { details: { retryAtMs } });
  const tree = new AggregateError([waiting(40_000), new Error('x', { cause: waiting(20_000) })]);
  within(await after(tree), 20_000, 30_000);
  within(await after(waiting(-5)), 0, 0);
  within(await after(waiting(1_000_000)), 60_000, 90_000);
});

test('finishes a static pod that is killed while it waits for its full name, without runtime calls', async () => {
  const node = new WorkerFixture();
  await node.running({ uid: 'old', source: 'file' });
  const waiter = podOf({ uid: 'new', source: 'file' });
  node.workers.updatePod({ updateType: 'create', pod: waiter });
  await settle();
  const done: string[] = [];
  node.workers.updatePod({ updateType: 'kill', pod: waiter, kill: { done: () => done.push('done') } });
  await settle();
  assert.deepEqual(node.kinds('new'), []);
  assert.deepEqual(done, ['done']);
  assert.equal(node.workers.queries.shouldPodBeFinished(podUid('new')), true);
});

test('starts a static pod of the same full name as soon as the first one has finished', async () => {
  const node = new WorkerFixture();
  const first = await node.running({ uid: 'old', source: 'file' });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'new', source: 'http' }) });
  await settle();
  assert.deepEqual(node.kinds('new'), []);
  const delayMs = node.delays.get(podUid('new')) ?? 0;
  assert.ok(delayMs >= 10_000 && delayMs <= 15_000);
  assert.equal(node.steps.filter((step) => step.uid === 'new' && step.outcome === 'waiting').length, 1);
  node.workers.updatePod({ updateType: 'kill', pod: first });
  await node.answer('terminating');
  assert.equal(node.workers.queries.isPodForMirrorPodTerminatingByFullName(fullNameOf(first)), false);
  const before = node.clock.monotonicMs();
  await node.answer('terminated');
  await node.next('sync', 'new');
  assert.equal(node.clock.monotonicMs(), before);
});

test('runs two API pods with the same name and different UIDs after a force deletion', async () => {
  const node = new WorkerFixture();
  await node.running({ uid: 'old' });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'new' }) });
  await node.next('sync', 'new');
});

test('starts only the last of 300 edited versions of a static pod once the terminating one has ended, and finishes the others', async () => {
  const node = new WorkerFixture();
  let current = await node.running({ uid: 'v0', source: 'file', graceSeconds: 20 });
  for (let edit = 1; edit <= 300; edit++) {
    node.workers.updatePod({ updateType: 'kill', pod: current });
    current = podOf({ uid: `v${edit}`, source: 'file', graceSeconds: 20 });
    node.workers.updatePod({ updateType: 'create', pod: current });
    await node.clock.advance(100);
    if (edit % 20 === 0) node.workers.syncKnownPods([current]);
    if (edit === 200) await node.answer('terminating', undefined, 'v0');
  }
  assert.deepEqual(node.kinds(), ['sync', 'terminating', 'terminated']);
  await node.answer('terminated', undefined, 'v0');
  await node.next('sync', 'v300');
  assert.deepEqual(node.workers.syncKnownPods([current]).size, 1);
  assert.equal(node.calls.length, 4);
});

test('retries the termination of an orphan at each housekeeping while the runtime is down', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  node.workers.updatePod({ updateType: 'kill', pod });
  for (let round = 0; round < 30; round++) {
    await node.fail('terminating', new Error('the runtime is down'));
    await node.clock.advance(2_000);
    node.workers.syncKnownPods([]);
  }
  await node.answer('terminating');
  await node.answer('terminated');
  node.workers.syncKnownPods([]);
  assert.equal(node.workers.sizes.pods, 0);
});

test('uses the grace period of the pod spec to terminate a pod that no source has, and cancels its sync', async () => {
  const node = new WorkerFixture();
  await node.running();
  node.workers.updatePod({ updateType: 'sync', pod: podOf() });
  const sync = await node.next('sync');
  const known = node.workers.syncKnownPods([]).get(uid);
  assert.deepEqual(known, { state: 'terminating', orphan: true, hasConfig: true, isStatic: false });
  assert.equal(sync.signal.aborted, true);
  assert.equal((await node.next('terminating')).graceSeconds, 30);
});

test('drops an orphan that never started immediately, and releases its full name', async () => {
  const node = new WorkerFixture();
  const old = await node.running({ uid: 'old', source: 'file' });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'b', source: 'file' }) });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'c', source: 'file' }) });
  await settle();
  const left = node.workers.syncKnownPods([old, podOf({ uid: 'c', source: 'file' })]);
  assert.deepEqual([...left.keys()], ['old', 'c']);
  node.workers.updatePod({ updateType: 'kill', pod: old });
  await node.answer('terminating');
  await node.answer('terminated');
  await node.next('sync', 'c');
  assert.deepEqual(node.kinds('b'), []);
});

test('stops a static pod that waits for its full name if the runtime has containers of it', async () => {
  const node = new WorkerFixture();
  await node.running({ uid: 'old', source: 'file' });
  node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: 'new', source: 'http' }) });
  await settle();
  node.workers.updatePod({ updateType: 'kill', runningPod: runtimePodOf('new') });
  await node.next('terminating', 'new');
});

test('neither delays nor repeats a sync when the wall clock jumps by an hour', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  for (const jump of [3_600_000, -7_200_000]) {
    node.clock.jumpWall(jump);
    node.workers.updatePod({ updateType: 'sync', pod });
    await node.answer('sync');
    const delayMs = node.delays.get(uid) ?? -1;
    assert.ok(delayMs >= 60_000 && delayMs <= 90_000);
  }
  const stamps = node.asked.map(({ stamp }) => stamp);
  assert.deepEqual(
    stamps,
    stamps.toSorted((a, b) => a - b),
  );
});

test('syncs 1000 pods of one list in order of creation, without starvation', async () => {
  const node = new WorkerFixture();
  const ids = Array.from({ length: 1_000 }, (_, index) => `pod-${index}`);
  for (const id of ids) node.workers.updatePod({ updateType: 'create', pod: podOf({ uid: id, name: id }) });
  await settle();
  assert.deepEqual(
    node.calls.map((call) => call.uid),
    ids,
  );
});

function controlOf({ clock, logs, workers }: WorkerFixture, journal: PodControlDeps['journal']): PodControl {
  const control = new PodControl({ clock, logger: logs.logger, journal });
  control.onUpdate((options) => workers.updatePod(options));
  return control;
}

test('resolves killPodNow when no container of the pod runs', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  const control = controlOf(node, { event: () => {} });
  const options = { why: 'eviction', graceOverrideSeconds: 3 } as const;
  const killed = control.killPodNow(pod, options, new AbortController().signal);
  assert.equal((await node.next('terminating')).graceSeconds, 3);
  await node.answer('terminating');
  await killed;
  assert.equal(node.workers.queries.shouldPodContentBeRemoved(uid), true);
});

test('rejects killPodNow after 1.5 times the grace period, and continues the kill', async () => {
  const node = new WorkerFixture();
  const pod = await node.running();
  const reasons: string[] = [];
  const control = controlOf(node, { event: (_pod, event) => reasons.push(event.reason) });
  const killed = control.killPodNow(pod, { why: 'other' }, new AbortController().signal);
  const failed = assert.rejects(
    killed,
    (error) => error instanceof KubelingError && error.code === 'POD_KILL_TIMEOUT',
  );
  await node.clock.advance(44_999);
  assert.deepEqual(reasons, []);
  await node.clock.advance(1);
  await failed;
  assert.deepEqual(reasons, ['ExceededGracePeriod']);
  assert.equal((await node.next('terminating')).signal.aborted, false);
  assert.equal(node.clock.pendingTimers, 0);
});

test('reports a worker that is busy for more than five minutes to the watchdog', async () => {
  const node = new WorkerFixture();
  node.workers.updatePod({ updateType: 'create', pod: podOf() });
  await node.next('sync');
  await node.clock.advance(300_000);
  assert.deepEqual(node.workers.busyWorkers(), []);
  await node.clock.advance(1);
  assert.deepEqual(node.workers.busyWorkers(), [
    { uid, name: 'web_default', state: 'syncing', busyMs: 300_001 },
  ]);
});

test('cancels all syncs when the workers are stopped, and starts no more', async () => {
  const node = new WorkerFixture();
  const pod = podOf();
  node.workers.updatePod({ updateType: 'create', pod });
  await node.next('sync');
  await node.workers[Symbol.asyncDispose]();
  const done: string[] = [];
  node.workers.updatePod({ updateType: 'kill', pod, kill: { done: () => done.push('ignored') } });
  await settle();
  assert.deepEqual([node.calls.length, node.held.length, done.length], [1, 0, 1]);
  assert.equal(node.workers.sizes.loops, 0);
});

test('answers the queries of other packages for a pod in each worker state, and for a pod without a worker before and after all sources are ready', async () => {
  const node = new WorkerFixture();
  const { queries } = node.workers;
  const answers = (id: string) =>
    [
      queries.isPodKnownTerminated(podUid(id)),
      queries.couldHaveRunningContainers(podUid(id)),
      queries.shouldPodBeFinished(podUid(id)),
      queries.isPodTerminationRequested(podUid(id)),
      queries.shouldPodContainersBeTerminating(podUid(id)),
      queries.shouldPodRuntimeBeRemoved(podUid(id)),
      queries.shouldPodContentBeRemoved(podUid(id)),
    ]
      .map((response) => (response ? 'y' : 'n'))
      .join('');
  assert.equal(answers('unknown'), 'nynnnnn');
  const pod = await node.running({ source: 'file' });
  node.workers.syncKnownPods([pod]);
  assert.equal(answers('unknown'), 'nnynyyy');
  assert.equal(answers(uid), 'nynnnnn');
  assert.equal(queries.isPodForMirrorPodTerminatingByFullName(fullNameOf(pod)), false);
  node.workers.updatePod({ updateType: 'kill', pod });
  assert.equal(answers(uid), 'nynynnn');
  assert.equal(queries.isPodForMirrorPodTerminatingByFullName(fullNameOf(pod)), true);
  await settle();
  assert.equal(answers(uid), 'nynyynn');
  await node.answer('terminating');
  assert.equal(answers(uid), 'ynnyyyn');
  node.workers.syncKnownPods([]);
  assert.equal(answers(uid), 'ynnyyyy');
  await node.answer('terminated');
  assert.equal(answers(uid), 'ynyyyyy');
});
