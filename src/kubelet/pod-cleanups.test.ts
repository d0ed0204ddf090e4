import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../lib/index.ts';
import { annotations, type Pod, type PodUid, podUid, type RuntimePod } from '../pods/index.ts';
import type { UpdatePodOptions, WorkerSummary } from '../workers/index.ts';
import type { CleanupSnapshot } from './cleanup-snapshots.ts';
import type { OrphanDirectories } from './orphan-directories.ts';
import { type CleanupCounts, PodCleanups } from './pod-cleanups.ts';

const { signal } = new AbortController();
const [expected, gone, late] = [podUid('wanted'), podUid('gone'), podUid('late')];
const syncing: WorkerSummary = { state: 'sync', orphan: false, hasConfig: true, isStatic: true };

function podOf(uid: PodUid): Pod {
  return aPod({ metadata: { uid, name: uid, annotations: { [annotations.source]: 'file' } } });
}

function runtimePod(uid: PodUid): RuntimePod {
  return { uid, name: uid, namespace: 'default', sandboxes: [], containers: [] };
}

function createHarness() {
  const clock = new VirtualClock();
  const state = {
    desired: [podOf(expected)] as readonly Pod[],
    known: new Map<PodUid, WorkerSummary>([[expected, syncing]]),
    /**
     * The UIDs of pods whose workers have finished; the fake drops these workers at the next update
     * of the desired pods.
     */
    finished: [] as readonly PodUid[],
    settling: new Set<PodUid>(),
    counts: undefined as CleanupCounts | undefined,
  };
  const acts: string[] = [];
  const cgroupRules: { mayRun(uid: PodUid): boolean }[] = [];
  const cleanups = new PodCleanups({
    clock,
    logger: collectLogs(clock).logger,
    journal: { event: () => {}, step: () => {} },
    pods: {
      getPods: () => state.desired,
      getPodByUid: (uid) => state.desired.find((pod) => pod.metadata.uid === uid),
      getPodsAndMirrorPods: () => ({ mirrorPods: [] }),
    },
    workers: {
      uids: () => new Set(state.known.keys()),
      has: (uid) => state.known.has(uid),
      syncKnownPods: () => {
        acts.push('sync known');
        for (const uid of state.finished) state.known.delete(uid);
        return state.known;
      },
      updatePod: ({ updateType, pod, runningPod }: UpdatePodOptions) => {
        const uid = pod?.metadata.uid ?? runningPod?.uid ?? podUid('');
        acts.push(`${updateType} ${uid}`);
        state.known.set(uid, syncing);
      },
      queries: {
        couldHaveRunningContainers: (uid) => state.known.has(uid),
        shouldPodBeFinished: () => false,
      },
    },
    statuses: { removeOrphanedStatuses: () => acts.push('statuses'), forget: () => {} },
    cgroups: {
      removeOrphans: async (rules) => {
        cgroupRules.push(rules);
        return [];
      },
    },
    directories: {
      removeSoon: (uids: ReadonlySet<PodUid>) => acts.push(`directories ${[...uids].join()}`),
      settled: async () => {},
    } as unknown as OrphanDirectories,
    isActive: () => true,
    isAdmissionPending: (uid) => state.settling.has(uid),
    probes: { retain() {} },
    restored: { areSourcesReadyFor: () => true, secondsLeft: () => undefined },
    checkpoints: { retain: () => {} },
    users: { retain: () => {} },
    allocation: { retain: () => {} },
    forgetPod: () => {},
    collectBackoffs: () => {},
    collectGarbage: () => {},
    observe: (counts) => {
      state.counts = counts;
    },
  });
  const snapshot = (change: Partial<CleanupSnapshot> = {}): CleanupSnapshot => ({
    withWorker: new Set(),
    withCgroup: new Set([expected]),
    running: [runtimePod(expected)],
    directories: [expected],
    atMs: clock.monotonicMs(),
    ...change,
  });
  return { clock, cleanups, state, acts, cgroupRules, snapshot };
}

test('terminates a pod that is not desired, keeps its directory while it runs, and counts the pod and its worker', () => {
  const { cleanups, acts, snapshot, state, cgroupRules } = createHarness();
  const running = [runtimePod(expected), runtimePod(gone)];
  cleanups.run(
    snapshot({ running, directories: [expected, gone, late], withCgroup: new Set([expected, gone]) }),
    signal,
  );
  assert.deepEqual(acts, ['sync known', 'statuses', `directories ${late}`, `kill ${gone}`]);
  assert.equal(state.counts?.orphanedRuntimePods, 1);
  assert.deepEqual(state.counts?.workers.get(gone), {
    state: 'terminating',
    orphan: true,
    hasConfig: false,
    isStatic: false,
  });
  assert.deepEqual(cgroupRules, [], 'its cgroup stays as long as its worker');
});

test('deletes nothing when the runtime list failed or is stale', async () => {
  const { cleanups, acts, snapshot, clock } = createHarness();
  cleanups.run(snapshot({ running: undefined, directories: [gone] }), signal);
  const old = snapshot({ running: [runtimePod(gone)] });
  await clock.advance(10_001);
  cleanups.run(old, signal);
  assert.deepEqual(acts, ['sync known', 'sync known']);
});

test('does not remove the cgroup of a pod that was added after the snapshot', () => {
  const { cleanups, snapshot, state, cgroupRules } = createHarness();
  cleanups.run(snapshot({ withCgroup: new Set([expected, gone]) }), signal);
  const [rules] = cgroupRules;
  assert.ok(rules);
  assert.deepEqual([expected, gone, late].map(rules.mayRun), [true, false, true]);
  state.known.set(gone, syncing);
  assert.equal(rules.mayRun(gone), true, 'also one that came back before its cgroup was removed');
});

test('does not count a pod as runtime orphan right after its worker has finished', () => {
  for (const when of ['while it was gathered', 'in this round'] as const) {
    const { cleanups, acts, snapshot, state } = createHarness();
    if (when === 'in this round') {
      state.known.set(gone, syncing);
      state.finished = [gone];
    }
    const withWorker = new Set(when === 'in this round' ? [] : [gone]);
    cleanups.run(snapshot({ withWorker, running: [runtimePod(expected), runtimePod(gone)] }), signal);
    assert.ok(!acts.includes(`kill ${gone}`), when);
  }
});

test('ignores a pod whose admission is pending', () => {
  const { cleanups, acts, snapshot, state } = createHarness();
  state.known.clear();
  state.settling.add(expected);
  cleanups.run(snapshot(), signal);
  assert.ok(!acts.includes(`create ${expected}`));
  state.settling.clear();
  cleanups.run(snapshot(), signal);
  assert.ok(acts.includes(`create ${expected}`));
});

test('starts a worker for a desired pod without one', () => {
  const { cleanups, acts, snapshot, state } = createHarness();
  state.known.clear();
  cleanups.run(snapshot(), signal);
  assert.ok(acts.includes(`create ${expected}`));
  assert.deepEqual(
    state.counts?.restarted.map((pod) => pod.metadata.uid),
    [expected],
  );
  assert.equal(state.counts?.workers.get(expected)?.state, 'sync');
});
