import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, NodeWorld, refusal } from '../../test/fakes/node-world.ts';
import { apiResources } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import { NodeController, type NodeControllerDeps } from './node-controller.ts';
import { ownLabelsAnnotation } from './node-object.ts';
import type { NodeSettings } from './settings.ts';

const attachDetach = 'volumes.kubernetes.io/controller-managed-attach-detach';

async function started(
  world: NodeWorld,
  settings: Partial<NodeSettings> = {},
  more: Partial<NodeControllerDeps> = {},
) {
  const keeper = new NodeController({ ...world.deps(settings), ...more });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).catch((error: unknown) => error);
  await world.clock.advance(50);
  const stop = async () => {
    controller.abort(new Error('stopped'));
    await ended;
    assert.equal(world.clock.pendingTimers, 0);
  };
  return { keeper, stop, ended };
}

test('creates a node with its labels, taints, annotations and complete status in one call', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world, {
    labels: { pool: 'a' },
    taints: [{ key: 'dedicated', value: 'x', effect: 'NoExecute' }],
    providerId: 'cloud://1',
    cloudProvider: 'external',
  });
  const node = world.api.node();
  assert.deepEqual(node?.metadata?.labels, {
    'kubernetes.io/hostname': 'n1',
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': 'amd64',
    'beta.kubernetes.io/os': 'linux',
    'beta.kubernetes.io/arch': 'amd64',
    pool: 'a',
  });
  assert.deepEqual(node?.metadata?.annotations, {
    [attachDetach]: 'true',
    [ownLabelsAnnotation]: '{"pool":"a"}',
  });
  assert.deepEqual(node?.spec, {
    taints: [
      { key: 'dedicated', value: 'x', effect: 'NoExecute' },
      { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
    ],
    providerID: 'cloud://1',
  });
  assert.equal(conditionOf(node, 'Ready')?.status, 'True');
  assert.equal(world.api.count('create', '/nodes/'), 1);
  assert.equal(world.api.count('patch'), 0);
  assert.deepEqual(world.reasons, [
    'NodeHasSufficientMemory',
    'NodeHasNoDiskPressure',
    'NodeHasSufficientPID',
  ]);
  await stop();
});

test('retries registration with back-off while the API server is unavailable', async () => {
  const world = new NodeWorld();
  world.api.refuse = () => refusal(503, 'away');
  const { stop } = await started(world);
  await world.clock.advance(60_000);
  const at = world.api.calls.map(({ atMs }) => atMs);
  const gaps = at.slice(1).map((ms, index) => ms - (at[index] ?? 0));
  assert.deepEqual(gaps.slice(0, 9), [100, 200, 400, 800, 1600, 3200, 6400, 7000, 7000]);
  assert.equal(world.logs.records.size < 10, true, 'one line, not one per attempt');
  world.api.refuse = () => undefined;
  await world.clock.advance(7_000);
  assert.ok(world.api.node());
  await stop();
});

const existing: Node = {
  metadata: {
    name: 'n1',
    uid: 'u1',
    labels: { 'kubernetes.io/os': 'windows', keep: 'me' },
    annotations: { other: 'x' },
  },
  spec: { taints: [{ key: 'mine', effect: 'NoSchedule' }] },
  status: {
    capacity: { 'hugepages-1Gi': '1Gi', 'gpu.example/card': '4' },
    allocatable: { 'hugepages-1Gi': '1Gi', 'gpu.example/card': '4' },
  },
};

test('adds missing fields to an existing Node in one write, and keeps its taints', async () => {
  const world = new NodeWorld();
  world.api.put(apiResources.nodes, existing);
  const taints = [{ key: 'wished', value: 'v', effect: 'NoSchedule' }];
  const { stop } = await started(world, { labels: { pool: 'b' }, taints });
  const node = world.api.node();
  assert.equal(node?.metadata?.uid, 'u1');
  assert.equal(node?.metadata?.labels?.['kubernetes.io/os'], 'linux');
  assert.equal(node?.metadata?.labels?.['keep'], 'me');
  assert.equal(node?.metadata?.labels?.['pool'], 'b');
  assert.equal(node?.metadata?.annotations?.[attachDetach], 'true');
  assert.equal(node?.metadata?.annotations?.['other'], 'x');
  assert.deepEqual(node?.spec, existing.spec);
  assert.ok(!('hugepages-1Gi' in (node?.status?.capacity ?? {})));
  assert.equal(node?.status?.capacity?.['gpu.example/card'], '4');
  assert.equal(world.api.count('patch', '/nodes/n1/status'), 1);
  const drift = [...world.logs.records].find(({ message }) => message.includes('taints'));
  assert.match(JSON.stringify(drift), /wished=v:NoSchedule is missing/);
  await stop();
});

test('removes labels that are not configured any more, and the annotation that records them, at the next start', async () => {
  const world = new NodeWorld();
  const first = await started(world, { labels: { pool: 'a', zone: 'z' } });
  await first.stop();
  const second = await started(world, { labels: { zone: 'y' } });
  const { labels, annotations } = world.api.node()?.metadata ?? {};
  assert.equal(labels?.['pool'], undefined);
  assert.equal(labels?.['zone'], 'y');
  assert.equal(annotations?.[ownLabelsAnnotation], '{"zone":"y"}');
  await second.stop();
  const third = await started(world);
  assert.equal(world.api.node()?.metadata?.labels?.['zone'], undefined);
  assert.equal(world.api.node()?.metadata?.annotations?.[ownLabelsAnnotation], undefined);
  await third.stop();
});

test('registers the node without a label that the API server forbids', async () => {
  const world = new NodeWorld();
  world.api.put(apiResources.nodes, existing);
  world.api.refuse = ({ verb, body }) =>
    verb === 'patch' && JSON.stringify(body).includes('forbidden-label')
      ? refusal(403, 'not allowed')
      : undefined;
  const { stop } = await started(world, { labels: { 'forbidden-label': '1' } });
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  assert.equal(world.api.node()?.metadata?.labels?.['kubernetes.io/os'], 'linux');
  assert.equal(world.api.node()?.metadata?.labels?.['forbidden-label'], undefined);
  await stop();
});

test('uses an existing Node, or waits for it, when creation is forbidden', async () => {
  const world = new NodeWorld();
  world.api.refuse = ({ verb, path }) =>
    verb === 'create' && path.includes('/nodes/') ? refusal(403, 'nodes is forbidden') : undefined;
  const { stop } = await started(world);
  await world.clock.advance(1_000);
  assert.match(JSON.stringify([...world.logs.records]), /nodes is forbidden/);
  world.api.put(apiResources.nodes, existing);
  await world.clock.advance(7_000);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  await stop();
});

test('sets devices of a previous boot to zero when it adopts the Node', async () => {
  const world = new NodeWorld();
  world.api.put(apiResources.nodes, existing);
  const resources = { capacity: () => world.capacity, areDevicesUnregistered: () => true };
  const { stop } = await started(world, {}, { resources });
  assert.equal(world.api.node()?.status?.capacity?.['gpu.example/card'], '0');
  assert.equal(world.api.node()?.status?.allocatable?.['gpu.example/card'], '0');
  await stop();
});

test("removes the attach-detach annotation when the attach-detach controller does not manage the node's volumes", async () => {
  const world = new NodeWorld();
  const first = await started(world);
  await first.stop();
  const second = await started(world, { attachDetach: 'kubelet' });
  assert.equal(world.api.node()?.metadata?.annotations?.[attachDetach], undefined);
  await second.stop();
});

test('creates no Node when registration is disabled, but updates one that an administrator creates', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world, { register: 'never' });
  await world.clock.advance(200_000);
  assert.equal(world.api.count('create'), 0);
  world.api.put(apiResources.nodes, { metadata: { name: 'n1', uid: 'u9' } });
  await world.clock.advance(11_000);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  assert.equal(world.api.node()?.metadata?.labels?.['kubernetes.io/hostname'], undefined);
  assert.equal(world.api.node()?.metadata?.labels?.['kubernetes.io/arch'], 'amd64');
  await stop();
});

test('keeps a ready Node ready when the kubelet restarts', async () => {
  const world = new NodeWorld();
  const first = await started(world);
  await first.stop();
  world.problems = ['container runtime status check may not have completed yet'];
  const second = await started(world);
  await world.clock.advance(2_000);
  world.problems = [];
  await world.clock.advance(20_000);
  assert.ok(!world.reasons.includes('NodeNotReady'));
  await second.stop();
  world.problems = ['container runtime is down'];
  const third = await started(world);
  await world.clock.advance(6_000);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'False');
  await third.stop();
});

test("CVE-2025-5187: no write of a Node sets an owner reference, so that no owner's deletion deletes the Node", async () => {
  const world = new NodeWorld();
  for (let round = 0; round < 2; round++) {
    const { stop } = await started(world, { labels: { round: String(round) } });
    await world.clock.advance(600_000);
    await stop();
  }
  const writes = world.api.calls.filter(({ verb, path }) => verb !== 'get' && path.includes('/nodes/'));
  assert.ok(writes.length > 1, `${writes.length} writes`);
  assert.doesNotMatch(JSON.stringify(writes), /ownerReferences/);
  assert.equal(world.api.node()?.metadata?.ownerReferences, undefined);
});
