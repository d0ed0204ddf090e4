import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalPods } from '../../../test/fakes/local-pods.ts';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import type { StoredObject } from '../api/index.ts';
import { conditionsOf } from './pod-object.ts';
import { Scheduler } from './scheduler.ts';

const pod = (name: string, more: JsonObject = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: 'm', image: 'x' }], ...more },
});

class Rig implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly api = new LocalPods(this.clock);
  readonly #end = new AbortController();
  readonly #running: Promise<void>;

  constructor() {
    const { world, catalogue, logs } = this.api;
    const binder = new Scheduler({
      context: world,
      entryOf: (each) => catalogue.of(each),
      logger: logs.logger,
    });
    this.#running = binder.run(this.#end.signal);
  }

  async node(name: string, more: JsonObject = {}): Promise<void> {
    this.api.do({
      verb: 'create',
      resource: apiResources.nodes,
      namespace: undefined,
      body: { metadata: { name, labels: { 'kubernetes.io/hostname': name } }, ...more },
    });
    await settle();
  }

  async changeNode(name: string, body: JsonObject): Promise<void> {
    this.api.do({
      verb: 'patch',
      resource: apiResources.nodes,
      namespace: undefined,
      name,
      patch: 'merge',
      body,
    });
    await settle();
  }

  async make(body: JsonObject): Promise<void> {
    this.api.do({ verb: 'create', body });
    await settle();
  }

  events(): readonly string[] {
    return this.api.world.objects
      .all(apiResources.events)
      .map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('The test has ended'));
    await this.#running;
    this.api[Symbol.dispose]();
  }
}

function nodeOf(found: StoredObject | undefined): unknown {
  return found?.spec?.['nodeName'];
}

function scheduled(found: StoredObject | undefined): JsonObject | undefined {
  return found && conditionsOf(found).find(({ type }) => type === 'PodScheduled');
}

test('binds a pod to the node and records an event', async () => {
  await using harness = new Rig();
  await harness.node('n1');
  await harness.make(pod('a'));
  const found = harness.api.pod();
  assert.equal(nodeOf(found), 'n1');
  assert.equal(scheduled(found)?.['status'], 'True');
  assert.equal(found?.metadata.generation, 1);
  assert.deepEqual(harness.events(), ['Normal Scheduled Successfully assigned default/a to n1']);
  const [event] = harness.api.world.objects.all(apiResources.events);
  assert.equal(event?.['reportingComponent'], 'default-scheduler');
  assert.match(String(event?.['eventTime']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

test('binds existing pods at start', async () => {
  const api = new LocalPods();
  api.do({ verb: 'create', body: pod('early') });
  api.do({
    verb: 'create',
    resource: apiResources.nodes,
    namespace: undefined,
    body: { metadata: { name: 'n1' } },
  });
  const end = new AbortController();
  const { world, catalogue, logs } = api;
  const running = new Scheduler({
    context: world,
    entryOf: (each) => catalogue.of(each),
    logger: logs.logger,
  }).run(end.signal);
  await settle();
  assert.equal(nodeOf(api.pod('early')), 'n1');
  end.abort(new Error('The test has ended'));
  await running;
  api[Symbol.dispose]();
});

test('reports a pod as unschedulable once and binds it when a node is added', async () => {
  await using harness = new Rig();
  await harness.make(pod('a'));
  const why = 'no nodes available to schedule pods';
  const condition = scheduled(harness.api.pod());
  assert.equal(condition?.['status'], 'False');
  assert.equal(condition?.['reason'], 'Unschedulable');
  assert.equal(condition?.['message'], why);
  const before = harness.api.pod()?.metadata.resourceVersion;
  await settle();
  assert.equal(harness.api.pod()?.metadata.resourceVersion, before);
  assert.deepEqual(harness.events(), [`Warning FailedScheduling ${why}`]);
  await harness.node('n1');
  assert.equal(nodeOf(harness.api.pod()), 'n1');
});

test('binds no pod to a node while a cordon, taint or selector excludes it', async () => {
  await using harness = new Rig();
  const taints = [{ key: 'a', value: 'b', effect: 'NoSchedule' }];
  await harness.node('n1', { spec: { unschedulable: true, taints } });
  await harness.make(pod('a', { nodeSelector: { disk: 'fast' } }));
  const told = () => scheduled(harness.api.pod())?.['message'];
  assert.equal(told(), '0/1 nodes are available: 1 node(s) were unschedulable.');
  await harness.changeNode('n1', { spec: { unschedulable: null } });
  assert.equal(told(), '0/1 nodes are available: 1 node(s) had untolerated taint(s).');
  await harness.changeNode('n1', { spec: { taints: null } });
  assert.equal(told(), "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.");
  await harness.changeNode('n1', { metadata: { labels: { disk: 'fast' } } });
  assert.equal(nodeOf(harness.api.pod()), 'n1');
  assert.equal(harness.events().filter((text) => text.includes('FailedScheduling')).length, 3);
});

test('ignores gated pods, pods of other schedulers and terminating pods', async () => {
  await using harness = new Rig();
  await harness.node('n1');
  await harness.make(pod('gated', { schedulingGates: [{ name: 'g' }] }));
  await harness.make(pod('other', { schedulerName: 'mine' }));
  assert.equal(nodeOf(harness.api.pod('gated')), undefined);
  assert.equal(nodeOf(harness.api.pod('other')), undefined);
  assert.equal(scheduled(harness.api.pod('gated'))?.['reason'], 'SchedulingGated');
  harness.api.do({
    verb: 'patch',
    name: 'gated',
    patch: 'merge',
    body: { spec: { schedulingGates: null } },
  });
  await settle();
  assert.equal(nodeOf(harness.api.pod('gated')), 'n1');
});

test('binds a pod to a node whose taint the pod tolerates', async () => {
  await using harness = new Rig();
  await harness.node('n1', { spec: { taints: [{ key: 'a', value: 'b', effect: 'NoExecute' }] } });
  await harness.make(pod('a', { tolerations: [{ key: 'a', operator: 'Equal', value: 'b' }] }));
  assert.equal(nodeOf(harness.api.pod()), 'n1');
});

test('binds each of a thousand pods exactly once', async () => {
  await using harness = new Rig();
  for (let index = 0; index < 1_000; index++) harness.api.do({ verb: 'create', body: pod(`p${index}`) });
  await harness.node('n1');
  await settle();
  const all = harness.api.world.objects.all(apiResources.pods);
  assert.ok(all.every((each) => nodeOf(each) === 'n1'));
});
