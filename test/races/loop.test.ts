import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type FaultPlan, noFaults } from '../simulator/index.ts';
import { apiPod, manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

it('pod arrives after cgroup snapshot: its cgroup is kept', async () => {
  await using node = await RaceNode.start();
  const other = await node.runsStatic('other', manifest('other'));
  const text = manifest('web', { graceSeconds: 4, onTerm: 2_000 });
  const uid = await node.runsStatic('web', text);
  const cgroupOf = (each: string) =>
    node.world.cgroups.directories().filter((path) => path.endsWith(`pod${each}`));
  const removed: string[] = [];
  const started = Promise.withResolvers<void>();
  let held = 0;
  let snapshot: PromiseWithResolvers<void> | undefined;
  node.toll = {
    before: ({ part, method, args }) => {
      if (part === 'cgroups' && method === 'rmdir') removed.push(String(args[0]));
      return method === 'runPodSandbox' ? started.promise : undefined;
    },
    // The response is delayed after it was computed, so it contains the cgroups that existed at the
    // time of the call.
    after: ({ part, method, args }) => {
      if (part !== 'cgroups' || method !== 'subdirectories' || snapshot === undefined) return undefined;
      if (!String(args[0]).endsWith('besteffort')) return undefined;
      held++;
      return snapshot.promise;
    },
  };
  // A cgroup without a pod, which housekeeping has to remove; only then does housekeeping list the
  // cgroups a second time.
  const left = 'f'.repeat(32);
  await node.world.cgroups.mkdir(cgroupOf(other)[0]?.replace(other, left) ?? '');
  // One pod terminates and restarts with the same UID while the delayed snapshot still contains its
  // old cgroup; another pod starts for the first time.
  node.remove('web');
  await node.pass(500);
  node.write('web', text);
  snapshot = Promise.withResolvers();
  await node.until('a snapshot is on its way', () => held > 0, 2_500);
  node.write('new', manifest('new'));
  const { queries } = node.kubelet.control.workers;
  await node.until('the old one has ended', () => queries.shouldPodBeFinished(uid), 5_000);
  const begun = await node.uidOf('new');
  await node.until('the new one has a cgroup', () => cgroupOf(begun).length === 1, 5_000);
  snapshot.resolve();
  snapshot = undefined;
  await node.until('what was left is gone', () => cgroupOf(left).length === 0, 5_000);
  await node.pass(5_000);
  started.resolve();
  await node.runs(begun);
  await node.until('it runs anew', () => node.of(uid, 'container-started').length === 2);
  await node.pass(20_000);
  for (const one of [uid, other, begun]) {
    assert.equal(cgroupOf(one).length, 1, one);
    assert.deepEqual(node.running(one), ['app']);
  }
  const removals = [uid, other, begun].map(
    (each) => removed.filter((path) => path.endsWith(`pod${each}`)).length,
  );
  assert.deepEqual(removals, [1, 0, 0]);
});

it('worker throws: retried, others unaffected', async () => {
  await using node = await RaceNode.start();
  const { statuses } = node.kubelet.state;
  const set = statuses.setPodStatus.bind(statuses);
  let thrown = 0;
  statuses.setPodStatus = (pod, status) => {
    if (!pod.metadata.name.startsWith('cursed') || thrown >= 3) return set(pod, status);
    thrown++;
    throw new TypeError('Cannot read properties of undefined');
  };
  node.write('cursed', manifest('cursed'));
  node.write('blessed', manifest('blessed'));
  const [cursed, blessed] = [await node.uidOf('cursed'), await node.uidOf('blessed')];
  assert.ok((await node.runs(blessed)) < 1_000);
  await node.pass(5_000);
  assert.deepEqual(node.running(cursed), []);
  await node.runs(cursed, 60_000);
  assert.equal(thrown, 3);
  assert.equal(node.of(blessed, 'container-started', 'container-exited').length, 1);
});

it('1000 pods in one SET: creation order, no starvation', async () => {
  await using node = await RaceNode.start({
    settings: { apiPods: 'expected', maxPods: 2_000 },
    rules: 'unchecked',
  });
  const { workers } = node.kubelet.control;
  const created: string[] = [];
  const update = workers.updatePod.bind(workers);
  workers.updatePod = (options) => {
    if (options.updateType === 'create') created.push(options.pod?.metadata.uid ?? '');
    update(options);
  };
  await node.api();
  const early = await node.runsStatic('early', manifest('early'));
  created.length = 0;
  const pods = Array.from({ length: 1_000 }, (_, age) => {
    const created = new Date(Date.UTC(2025, 11, 31) + age * 1_000).toISOString().replace('.000', '');
    return apiPod(`web${age}`, `uid-${age}`, { metadata: { creationTimestamp: created } });
  });
  // The pods are delivered in an order that is neither their creation order nor its reverse.
  await node.api(...pods.toSorted((each, other) => (each.metadata.uid < other.metadata.uid ? 1 : -1)));
  await node.pass(50);
  node.write('late', manifest('late'));
  const [victim] = node.world.runtime.runningContainers().filter(({ podUid }) => podUid === early);
  node.world.runtime.crashContainer(victim?.id ?? '');
  const late = await node.uidOf('late');
  await node.runs(late, 10_000);
  await node.until(
    'who was there is served too',
    () => node.of(early, 'container-started').length === 2,
    10_000,
  );
  const starts = () => node.happened.filter(({ kind }) => kind === 'container-started').length;
  for (let seconds = 0; starts() < 1_003 && seconds < 120; seconds++) await node.pass(1_000);
  assert.equal(starts(), 1_003);
  assert.equal(new Set(node.world.runtime.runningContainers().map(({ podUid }) => podUid)).size, 1_002);
  assert.deepEqual(
    created.filter((uid) => uid.startsWith('uid-')),
    pods.map(({ metadata }) => metadata.uid),
  );
});

it('runtime list fails mid-housekeeping: nothing is deleted', async () => {
  await using node = await RaceNode.start();
  const gone = await node.runsStatic('gone', manifest('gone'));
  const stays = await node.runsStatic('stays', manifest('stays'));
  let failing = false;
  const faults: FaultPlan = {
    ...noFaults,
    call: (method) =>
      failing && method.startsWith('list')
        ? { kind: 'error', code: 'UNKNOWN', message: 'no list' }
        : undefined,
  };
  node.world.setFaults(faults, 'lists fail at times');
  await node.restartKubelet(() => {
    node.remove('gone');
    failing = true;
  });
  // The runtime's list calls fail only after the kubelet has started: the pod is no longer desired,
  // but the kubelet cannot know what is left of it.
  failing = false;
  await node.until('it works', () => node.kubelet.control.problems().length === 0, 10_000);
  failing = true;
  const before = node.calls.length;
  await node.pass(20_000);
  assert.deepEqual(node.running(gone), ['app']);
  assert.deepEqual(await node.world.machine.files.names('/var/lib/kubelet/pods'), [gone, stays].sort());
  assert.ok(node.world.cgroups.directories().some((path) => path.endsWith(`pod${gone}`)));
  assert.deepEqual(node.calls.slice(before), []);
  failing = false;
  await node.becomesClean(20_000, stays);
  assert.equal(node.of(stays, 'container-started', 'container-exited').length, 1);
});
