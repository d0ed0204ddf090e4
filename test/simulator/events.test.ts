import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ContainerEvent,
  type ContainerEventResponse,
  type Envelope,
  TaskEvent,
  TaskExit,
} from '../../src/cri/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { SimulatedNode } from '../fakes/simulated-node.ts';
import { scriptedFaults } from './faults.ts';

interface Heard<T> {
  readonly items: T[];
  readonly ended: Promise<unknown>;
}

/** Collects the events of a stream until it ends; `ended` then resolves with its error. */
function hear<T>(stream: AsyncIterable<T>): Heard<T> {
  const items: T[] = [];
  const ended = (async () => {
    for await (const item of stream) items.push(item);
  })().then(
    () => undefined,
    (error: unknown) => error,
  );
  return { items, ended };
}

async function listen(node: SimulatedNode, filters: readonly string[] = []): Promise<Heard<Envelope>> {
  const heard = hear(node.transport.containerdEvents.subscribe({ filters }, node.options));
  await node.clock.advance(10);
  return heard;
}

function about({ topic, event }: Envelope): string {
  const value = event?.value ?? Buffer.alloc(0);
  if (topic === '/tasks/exit') return TaskExit.decode(value).containerId;
  return topic.startsWith('/containers/')
    ? ContainerEvent.decode(value).id
    : TaskEvent.decode(value).containerId;
}

const topicsOf = (heard: Heard<Envelope>, id: string) =>
  heard.items.filter((item) => about(item) === id).map(({ topic }) => topic);

test('containerd events report the life cycle of sandboxes and containers', async () => {
  using node = new SimulatedNode();
  const heard = await listen(node);
  const { podSandboxId, containerId } = await node.pod('sleep 1; exit 3');
  await node.exited(containerId);
  await node.done(node.cri.removePodSandbox({ podSandboxId }, node.options));
  await node.clock.advance(100);
  const life = [
    '/containers/create',
    '/tasks/create',
    '/tasks/start',
    '/tasks/exit',
    '/tasks/delete',
    '/containers/delete',
  ];
  assert.deepEqual(topicsOf(heard, podSandboxId), life);
  assert.deepEqual(topicsOf(heard, containerId), life);
  const exit = heard.items.find((item) => item.topic === '/tasks/exit' && about(item) === containerId);
  assert.equal(exit?.namespace, 'k8s.io');
  assert.equal(exit?.event?.typeUrl, 'containerd.events.TaskExit');
  const { exitStatus, id, exitedAt } = TaskExit.decode(exit?.event?.value ?? Buffer.alloc(0));
  assert.deepEqual([exitStatus, id], [3, containerId]);
  assert.ok((exitedAt?.seconds ?? 0n) > 0n);
});

test('a container that fails to start has no task events', async () => {
  using node = new SimulatedNode();
  const heard = await listen(node);
  const id = await node.create(await node.sandbox(), { command: ['/nope'] });
  await assert.rejects(node.start(id));
  await node.clock.advance(100);
  assert.deepEqual(topicsOf(heard, id), ['/containers/create']);
});

test('OOM kills and exec processes are reported by their own containerd events', async () => {
  using node = new SimulatedNode({ script: () => ({ oomAtMs: 5_000 }) });
  const { containerId } = await node.pod();
  const heard = await listen(node);
  await node.done(node.cri.execSync({ containerId, cmd: ['true'] }, node.options));
  await node.exited(containerId);
  await node.clock.advance(100);
  const topics = topicsOf(heard, containerId);
  assert.deepEqual(topics, [
    '/tasks/exec-added',
    '/tasks/exec-started',
    '/tasks/exit',
    '/tasks/oom',
    '/tasks/exit',
    '/tasks/delete',
  ]);
  const first = heard.items.find(({ topic }) => topic === '/tasks/exit');
  assert.notEqual(TaskExit.decode(first?.event?.value ?? Buffer.alloc(0)).id, containerId);
});

test('event filters select by namespace and topic', async () => {
  using node = new SimulatedNode();
  const tasks = await listen(node, ['namespace==k8s.io,topic~=^/tasks/']);
  const two = await listen(node, ['topic=="/containers/create"', 'topic==/tasks/start']);
  const none = await listen(node, ['namespace==other', 'topic!=/x,namespace!=k8s.io']);
  await node.sandbox();
  await node.clock.advance(100);
  assert.deepEqual(
    tasks.items.map(({ topic }) => topic),
    ['/tasks/create', '/tasks/start'],
  );
  assert.deepEqual(
    two.items.map(({ topic }) => topic),
    ['/containers/create', '/tasks/start'],
  );
  assert.deepEqual(none.items, []);
  const bad = await listen(node, ['event.id==x']);
  const error = await bad.ended;
  assert.ok(error instanceof GrpcError && error.grpcCode === 'INVALID_ARGUMENT');
});

test('CRI events are unsupported by containerd 1.6', async () => {
  using node = new SimulatedNode();
  const heard = hear(node.cri.getContainerEvents({}, node.options));
  await node.clock.advance(10);
  const error = await heard.ended;
  assert.ok(error instanceof GrpcError && error.grpcCode === 'UNIMPLEMENTED');
});

test('CRI events of containerd 2 contain the statuses of the pod', async () => {
  using node = new SimulatedNode({ flavour: 'containerd-2' });
  const heard: Heard<ContainerEventResponse> = hear(node.cri.getContainerEvents({}, node.options));
  await node.clock.advance(10);
  const { podSandboxId, containerId } = await node.pod('exit 7');
  await node.exited(containerId);
  await node.done(node.cri.removePodSandbox({ podSandboxId }, node.options));
  await node.clock.advance(100);
  const kinds = (id: string) =>
    heard.items.filter((item) => item.containerId === id).map((item) => item.containerEventType);
  const life = ['CREATED', 'STARTED', 'STOPPED', 'DELETED'].map((word) => `CONTAINER_${word}_EVENT`);
  assert.deepEqual(kinds(podSandboxId), life);
  assert.deepEqual(kinds(containerId), life);
  const stopped = heard.items.find(
    (item) => item.containerId === containerId && item.containerEventType === 'CONTAINER_STOPPED_EVENT',
  );
  assert.equal(stopped?.podSandboxStatus?.state, 'SANDBOX_READY');
  assert.deepEqual(
    stopped?.containersStatuses.map((status) => status.exitCode),
    [7],
  );
});

test('CRI events are buffered for a while until the first subscriber connects', async () => {
  using node = new SimulatedNode({ flavour: 'containerd-2' });
  await node.sandbox(node.podConfig('old'));
  await node.clock.advance(6 * 60_000);
  const fresh = await node.sandbox(node.podConfig('new'));
  const heard = hear(node.cri.getContainerEvents({}, node.options));
  await node.clock.advance(100);
  assert.deepEqual(
    heard.items.map(({ containerId }) => containerId),
    [fresh, fresh],
  );
});

test('a subscriber whose stream overflows with buffered events is removed', async () => {
  using node = new SimulatedNode({
    flavour: 'containerd-2',
    faults: scriptedFaults({ events: [{ topic: '*', times: 1, fault: { kind: 'cut' } }] }),
  });
  await node.sandbox();
  const heard = hear(node.cri.getContainerEvents({}, node.options));
  await node.clock.advance(100);
  assert.ok((await heard.ended) instanceof GrpcError);
  assert.equal(node.runtime.held().subscribers, 0);
});

test('leaving the loop or aborting the call ends the event subscription', async () => {
  using node = new SimulatedNode();
  const controller = new AbortController();
  const heard = hear(
    node.transport.containerdEvents.subscribe({ filters: [] }, { signal: controller.signal }),
  );
  await node.clock.advance(10);
  assert.equal(node.runtime.held().subscribers, 1);
  controller.abort(new Error('enough'));
  const error = await heard.ended;
  assert.ok(error instanceof GrpcError && error.grpcCode === 'CANCELLED');
  assert.deepEqual([node.runtime.held().subscribers, node.runtime.held().calls], [0, 0]);

  const left = (async () => {
    for await (const _ of node.transport.containerdEvents.subscribe({ filters: [] }, node.options)) break;
  })();
  await node.clock.advance(10);
  await node.sandbox();
  await node.done(left);
  assert.equal(node.runtime.held().subscribers, 0);
});

test('events can be lost, delayed or duplicated, or end their stream', async () => {
  using node = new SimulatedNode({
    faults: scriptedFaults({
      events: [
        { topic: '/containers/create', nth: 1, fault: { kind: 'drop' } },
        { topic: '/tasks/create', nth: 1, fault: { kind: 'late', ms: 5_000 } },
        { topic: '/tasks/start', nth: 1, fault: { kind: 'duplicate', ms: 1_000 } },
        { topic: '/containers/create', nth: 2, fault: { kind: 'cut' } },
      ],
    }),
  });
  const heard = await listen(node);
  await node.sandbox(node.podConfig('one'));
  await node.clock.advance(10_000);
  assert.deepEqual(
    heard.items.map(({ topic }) => topic),
    ['/tasks/start', '/tasks/start', '/tasks/create'],
  );
  await node.sandbox(node.podConfig('two'));
  const error = await node.done(heard.ended);
  assert.ok(error instanceof GrpcError && error.grpcCode === 'UNAVAILABLE');
  assert.equal(heard.items.length, 3);
});

test('a subscriber that never reads loses its stream, so that memory use stays limited', async () => {
  using node = new SimulatedNode();
  const stream = node.transport.containerdEvents.subscribe({ filters: [] }, node.options);
  const reader = stream[Symbol.asyncIterator]();
  const first = reader.next();
  await node.clock.advance(10);
  const podSandboxId = await node.sandbox();
  for (let attempt = 0; attempt < 2_500; attempt++) {
    const containerId = await node.create(podSandboxId, { metadata: { name: 'x', attempt }, logPath: '' });
    await node.done(node.cri.removeContainer({ containerId }, node.options));
  }
  await node.done(Promise.resolve(first));
  assert.equal(node.runtime.held().subscribers, 0);
});
