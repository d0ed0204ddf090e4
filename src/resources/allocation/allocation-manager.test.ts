import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { PodCondition, ResourceRequirements } from '../../kinds/index.ts';
import { collectLogs } from '../../lib/index.ts';
import {
  memoryOf,
  milliCpuOf,
  type Pod,
  type PodEvent,
  type PodUid,
  podRequests,
  podUid,
  qosClass,
} from '../../pods/index.ts';
import { AllocatedPods } from './allocated-pods.ts';
import { AllocationManager, type AllocationManagerDeps } from './allocation-manager.ts';
import type { ResizeTrigger } from './metrics.ts';
import { PodResourceFile } from './pod-resource-file.ts';
import { ResizeConditions } from './resize-conditions.ts';

interface Wanted {
  readonly name?: string;
  readonly cpu: string;
  readonly generation?: number;
  readonly priority?: number;
  readonly resources?: ResourceRequirements;
  readonly conditions?: readonly PodCondition[];
}

function asking({ name = 'a', cpu, generation = 1, priority, resources, conditions }: Wanted): Pod {
  return aPod({
    metadata: { name, uid: podUid(name), generation },
    spec: {
      containers: [{ name: 'main', image: 'i', resources: resources ?? { requests: { cpu } } }],
      ...(priority !== undefined && { priority }),
    },
    status: conditions === undefined ? {} : { conditions },
  });
}

/** A node with the given capacity in millicores. */
function createHarness(capacity: number, over: Partial<AllocationManagerDeps> = {}) {
  const clock = new VirtualClock();
  const { logger } = collectLogs(clock);
  const files = new Map<string, string>();
  const file = (path: string) =>
    new PodResourceFile({
      path,
      logger,
      corrupted() {},
      files: {
        readEnd: async (where) => (files.has(where) ? Buffer.from(files.get(where) ?? '') : undefined),
        replace: async (where, text) => void files.set(where, text),
      },
    });
  const pods = new Map<PodUid, Pod>();
  const events: string[] = [];
  const synced: string[] = [];
  const accepted: ResizeTrigger[] = [];
  let ready = true;
  const begin = async () => {
    const [allocated, actuated] = [file('allocated'), file('actuated')];
    const conditions = new ResizeConditions(clock);
    const allocatedPods = new AllocatedPods({ allocated, actuated }, conditions);
    await allocatedPods.open();
    const manager: AllocationManager = new AllocationManager({
      clock,
      logger,
      journal: {
        event: (_pod, event: PodEvent) => void events.push(`${event.reason} ${event.message}`),
        step() {},
      },
      allocatedPods,
      findPod: (uid) => pods.get(uid),
      areSourcesReady: () => ready,
      infeasibility: () => undefined,
      checkAdmission: (pod) => {
        const rest = [...pods.values()].filter((other) => other.metadata.uid !== pod.metadata.uid);
        const used = rest.reduce((sum, one) => sum + milliCpuOf(podRequests(allocatedPods.counted(one))), 0n);
        const isFitting = used + milliCpuOf(podRequests(pod)) <= BigInt(capacity);
        return isFitting ? undefined : { reason: 'OutOfcpu', message: `used: ${used}` };
      },
      syncPod: (pod) => void synced.push(pod.metadata.name),
      observer: { requested() {}, infeasible() {}, acceptedAfterWaiting: (each) => void accepted.push(each) },
      ...over,
    });
    const node = {
      manager,
      allocatedPods,
      allocated,
      actuated,
      conditions,
      take(pod: Pod, admitted = allocatedPods.withAllocation(pod)) {
        pods.set(pod.metadata.uid, pod);
        manager.podAdmitted(pod, admitted);
      },
      edit(pod: Pod) {
        const before = pods.get(pod.metadata.uid);
        pods.set(pod.metadata.uid, pod);
        manager.podUpdated(before, pod);
      },
      remove(name: string) {
        pods.delete(podUid(name));
        manager.podRemoved(podUid(name));
      },
      has: (name: string) => {
        const pod = pods.get(podUid(name));
        return pod && milliCpuOf(podRequests(allocatedPods.withAllocation(pod)));
      },
      state: (name: string) =>
        conditions
          .of(podUid(name))
          .map(({ type, reason }) => `${type}${reason === undefined ? '' : ` ${reason}`}`),
    };
    return node;
  };
  return {
    clock,
    events,
    synced,
    accepted,
    begin,
    files,
    pods,
    setReady(on: boolean) {
      ready = on;
    },
  };
}

test('a pod edited while it waits for admission keeps the resources it was admitted with until the resize fits', async () => {
  const { begin, clock, events } = createHarness(1_000);
  const node = await begin();
  const end = new AbortController();
  const running = node.manager.run(end.signal);
  node.take(asking({ name: 'b', cpu: '700m' }));
  node.take(asking({ cpu: '900m', generation: 2 }), asking({ cpu: '100m' }));
  assert.equal(node.has('a'), 100n);
  await clock.advance(0);
  assert.deepEqual([node.has('a'), node.state('a')], [100n, ['PodResizePending Deferred']]);
  node.remove('b');
  await clock.advance(0);
  assert.equal(node.has('a'), 900n);
  assert.equal(events.filter((event) => event.startsWith('ResizeStarted')).length, 1);
  end.abort();
  await running;
});

test('allocates a resize that fits immediately and reports it', async () => {
  const { begin, events, synced } = createHarness(1_000);
  const node = await begin();
  node.take(asking({ cpu: '100m' }));
  node.edit(asking({ cpu: '200m', generation: 2 }));
  assert.equal(node.has('a'), 200n);
  assert.deepEqual(node.state('a'), ['PodResizeInProgress']);
  assert.deepEqual(events, [
    'ResizeStarted Pod resize started: {"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"}}}],"generation":2}',
  ]);
  // The manager requests no sync for the edited pod: its caller syncs it.
  assert.deepEqual(synced, []);
});

test('defers a resize without capacity, reports it once, and allocates it after capacity is released', async () => {
  const { begin, events, synced, clock, accepted } = createHarness(1_000);
  const node = await begin();
  node.take(asking({ cpu: '500m' }));
  node.take(asking({ name: 'b', cpu: '400m' }));
  node.edit(asking({ cpu: '700m', generation: 2 }));
  node.edit(asking({ cpu: '700m', generation: 2 }));
  assert.equal(node.has('a'), 500n);
  assert.deepEqual(node.state('a'), ['PodResizePending Deferred']);
  assert.deepEqual(events, [
    'ResizeDeferred Pod resize OutOfcpu: {"containers":[{"name":"main","resources":{"requests":{"cpu":"700m"}}}],"generation":2,"error":"used: 400"}',
  ]);
  const end = new AbortController();
  const running = node.manager.run(end.signal);
  node.remove('b');
  await clock.advance(1);
  assert.equal(node.has('a'), 700n);
  assert.deepEqual(node.state('a'), ['PodResizeInProgress']);
  assert.deepEqual(synced, ['a']);
  assert.deepEqual(accepted, ['pods_removed']);
  end.abort();
  await running;
});

test('retries deferred resizes every three minutes, but not before all pod sources are ready', async () => {
  const { begin, clock, pods, setReady } = createHarness(1_000);
  const node = await begin();
  const end = new AbortController();
  setReady(false);
  node.take(asking({ cpu: '500m' }));
  node.take(asking({ name: 'b', cpu: '400m' }));
  const running = node.manager.run(end.signal);
  node.edit(asking({ cpu: '600m', generation: 2 }));
  assert.deepEqual([node.has('a'), node.state('a')], [500n, []]);
  setReady(true);
  await clock.advance(30_000);
  assert.equal(node.has('a'), 600n);
  node.edit(asking({ cpu: '700m', generation: 3 }));
  pods.delete(podUid('b'));
  await clock.advance(179_000);
  assert.equal(node.has('a'), 600n);
  await clock.advance(1_000);
  assert.equal(node.has('a'), 700n);
  end.abort();
  await running;
});

test('retries pending resizes in this order: decreases first, then by pod priority, then Guaranteed pods, then the longest waiting', async () => {
  const order: string[] = [];
  const { begin, clock } = createHarness(0, {
    checkAdmission: ({ metadata: { name } }) => {
      order.push(name);
      return { reason: 'OutOfcpu', message: '' };
    },
  });
  const node = await begin();
  const both = (cpu: string) => ({ requests: { cpu, memory: '1' }, limits: { cpu, memory: '1' } });
  const late = asking({ name: 'late', cpu: '1' });
  node.take(late);
  node.take(asking({ name: 'early', cpu: '1' }));
  node.take(asking({ name: 'sure', cpu: '', resources: both('1') }));
  node.take(asking({ name: 'vip', cpu: '1', priority: 5 }));
  node.take(asking({ name: 'less', cpu: '2' }));
  node.edit(asking({ name: 'early', cpu: '2', generation: 2 }));
  await clock.advance(2_000);
  node.edit(asking({ name: 'late', cpu: '2', generation: 2 }));
  node.edit(asking({ name: 'sure', cpu: '', resources: both('2'), generation: 2 }));
  assert.equal(qosClass(asking({ cpu: '', resources: both('1') })), 'Guaranteed');
  node.edit(asking({ name: 'vip', cpu: '2', priority: 5, generation: 2 }));
  order.length = 0;
  node.edit(asking({ name: 'less', cpu: '1', generation: 2 }));
  assert.deepEqual(order, ['less', 'vip', 'sure', 'early', 'late']);
});

test('reports an infeasible resize once and does not retry it', async () => {
  const { begin, events } = createHarness(1_000, {
    infeasibility: () => ({ message: 'not with swap', detail: 'swap_limitation' }),
  });
  const node = await begin();
  node.take(asking({ cpu: '100m' }));
  node.edit(asking({ cpu: '200m', generation: 2 }));
  assert.deepEqual(node.state('a'), ['PodResizePending Infeasible']);
  assert.match(events[0] ?? '', /^ResizeInfeasible Pod resize Infeasible: .*"error":"not with swap"}$/);
  assert.equal(node.manager.size, 0);
});

test('an edit that is reverted leaves no pending resize', async () => {
  const { begin } = createHarness(100);
  const node = await begin();
  node.take(asking({ cpu: '100m' }));
  node.edit(asking({ cpu: '200m', generation: 2 }));
  node.edit(asking({ cpu: '0.1', generation: 3 }));
  assert.deepEqual(node.state('a'), []);
  assert.equal(node.manager.size, 0);
});

test('completes a resize when the pod runs with its allocated resources, but ignores an observation older than the resize', async () => {
  const { begin, events } = createHarness(1_000);
  const node = await begin();
  const old = asking({ cpu: '100m' });
  node.take(old);
  const edited = asking({ cpu: '200m', generation: 2 });
  node.edit(edited);
  node.manager.resizeObserved(old, 'none');
  assert.deepEqual(node.state('a'), ['PodResizeInProgress']);
  node.manager.resizeObserved(edited, 'in-progress');
  node.manager.resizeFailed(edited, 'too little');
  node.manager.resizeFailed(edited, 'too little');
  assert.deepEqual(node.state('a'), ['PodResizeInProgress Error']);
  node.manager.resizeObserved(edited, 'none');
  assert.deepEqual(node.state('a'), []);
  assert.deepEqual(
    events.map((text) => text.split(' ')[0]),
    ['ResizeStarted', 'ResizeError', 'ResizeCompleted'],
  );
});

test('after a restart, prefers the persisted allocation over the spec and keeps the pending resize', async () => {
  const { begin, clock, events } = createHarness(1_000);
  const before = await begin();
  before.take(asking({ cpu: '500m' }));
  before.take(asking({ name: 'b', cpu: '400m' }));
  before.edit(asking({ cpu: '700m', generation: 2 }));
  await settle();
  const conditions = before.conditions.of(podUid('a'));
  const reported = events.length;
  await clock.advance(60_000);
  const node = await begin();
  node.take(asking({ cpu: '700m', generation: 2, conditions }));
  node.take(asking({ name: 'b', cpu: '400m' }));
  assert.equal(node.has('a'), 500n);
  const end = new AbortController();
  const running = node.manager.run(end.signal);
  node.manager.podsAdded();
  await clock.advance(1);
  assert.deepEqual(node.conditions.of(podUid('a')), conditions);
  assert.equal(events.length, reported);
  end.abort();
  await running;
});

test('restores an allocation lost from disk from the pod status', async () => {
  const { begin } = createHarness(1_000);
  const node = await begin();
  const pod = asking({ cpu: '700m', generation: 2 });
  node.take({
    ...pod,
    status: {
      observedGeneration: 1,
      containerStatuses: [
        {
          name: 'main',
          ready: true,
          restartCount: 0,
          image: '',
          imageID: '',
          allocatedResources: { cpu: '500m' },
          resources: { requests: { cpu: '500m' } },
        },
      ],
    },
  });
  assert.equal(node.has('a'), 500n);
});

test('counts the actuated resources of a pod until a resize has released them', async () => {
  const { begin } = createHarness(1_000);
  const node = await begin();
  node.take(asking({ cpu: '900m' }));
  await node.actuated.set(podUid('a'), { containers: { main: { requests: { cpu: '900m', memory: '5' } } } });
  node.take(asking({ name: 'b', cpu: '100m' }));
  const less = asking({ cpu: '100m', generation: 2 });
  node.edit(less);
  assert.equal(node.has('a'), 100n);
  assert.equal(memoryOf(podRequests(node.allocatedPods.counted(less))), 5n);
  node.edit(asking({ name: 'b', cpu: '200m', generation: 2 }));
  assert.deepEqual(node.state('b'), ['PodResizePending Deferred']);
});
