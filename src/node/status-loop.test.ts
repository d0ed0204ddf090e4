import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, NodeWorld, refusal } from '../../test/fakes/node-world.ts';
import { apiResources } from '../api/index.ts';
import { NodeController, type NodeControllerDeps } from './node-controller.ts';
import type { NodeSettings } from './settings.ts';

async function started(
  world: NodeWorld,
  settings: Partial<NodeSettings> = {},
  more: Partial<NodeControllerDeps> = {},
) {
  const keeper = new NodeController({ ...world.deps(settings), ...more });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  await world.clock.advance(50);
  const stop = async () => {
    controller.abort(new Error('stopped'));
    await ended;
    assert.equal(world.clock.pendingTimers, 0);
  };
  return { keeper, stop, ended };
}

const statusPatches = (world: NodeWorld) => world.api.count('patch', '/nodes/n1/status');

test('is ready in under two seconds with a single patch when the runtime starts', async () => {
  const world = new NodeWorld();
  world.problems = ['container runtime is down'];
  const { stop } = await started(world);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'False');
  const before = world.api.calls.filter(({ path }) => path.includes('/nodes/')).length;
  await world.clock.advance(1_000);
  assert.equal(world.api.calls.filter(({ path }) => path.includes('/nodes/')).length, before);
  world.problems = [];
  await world.clock.advance(150);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  assert.equal(statusPatches(world), 1);
  assert.ok(world.reasons.includes('NodeReady'));
  assert.ok(world.runtimeChecks >= 10, 'the runtime is checked each time');
  assert.ok(world.clock.monotonicMs() < 2_000);
  await stop();
});

test('the runtime is checked before the first status', async () => {
  const world = new NodeWorld();
  world.problems = ['container runtime status check may not have completed yet'];
  world.onCheck = () => {
    world.problems = [];
  };
  const { stop } = await started(world);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  assert.equal(statusPatches(world), 0);
  await stop();
});

test('logs a node that is not ready after two minutes, and continues with regular checks', async () => {
  const world = new NodeWorld();
  world.problems = ['container runtime is down'];
  const { stop } = await started(world);
  await world.clock.advance(121_000);
  assert.match(JSON.stringify([...world.logs.records]), /did not become ready in time/);
  const [looks, checks] = [world.looks, world.runtimeChecks];
  await world.clock.advance(30_000);
  assert.ok(world.looks - looks <= 4);
  assert.equal(world.runtimeChecks, checks);
  world.problems = [];
  await world.clock.advance(10_500);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  await stop();
});

test('writes an unchanged status about every five minutes', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  await world.clock.advance(149_000);
  assert.equal(statusPatches(world), 0);
  await world.clock.advance(320_000);
  assert.equal(statusPatches(world), 1);
  const body = JSON.stringify(world.api.last('patch')?.body);
  assert.match(body, /lastHeartbeatTime/);
  assert.doesNotMatch(body, /capacity|addresses|nodeInfo|images|lastTransitionTime/);
  await world.clock.advance(300_000 + 11_000);
  assert.equal(statusPatches(world), 2);
  await stop();
});

test('writes a change with the next check, and immediately after a hint', async () => {
  const world = new NodeWorld();
  const { keeper, stop } = await started(world);
  await world.clock.advance(1_000);
  world.pressures.add('memory');
  await world.clock.advance(10_400);
  assert.equal(conditionOf(world.api.node(), 'MemoryPressure')?.status, 'True');
  assert.equal(world.reasons.at(-1), 'NodeHasInsufficientMemory');
  await world.clock.advance(1_000);
  world.problems = ['node is shutting down'];
  keeper.hint();
  await world.clock.advance(10);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.message, 'node is shutting down');
  await stop();
});

test('limits hints to two checks a second', async () => {
  const world = new NodeWorld();
  const { keeper, stop } = await started(world);
  const before = world.looks;
  for (let step = 0; step < 100; step++) {
    keeper.hint();
    await world.clock.advance(50);
  }
  assert.ok(world.looks - before <= 11);
  assert.ok(world.looks - before >= 9);
  await stop();
});

test('publishes complete addresses, and keeps what cannot be determined', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  assert.equal(world.api.node()?.status?.addresses?.[0]?.address, '192.168.1.5');
  world.addresses = [{ interface: 'eth0', address: '192.168.1.6' }];
  await world.clock.advance(11_000);
  const body = world.api.last('patch')?.body as { status: { addresses: unknown } };
  assert.deepEqual(body.status.addresses, [
    { type: 'InternalIP', address: '192.168.1.6' },
    { type: 'Hostname', address: 'n1' },
    { $patch: 'replace' },
  ]);
  world.addresses = [];
  await world.clock.advance(40_000);
  assert.equal(world.api.node()?.status?.addresses?.[0]?.address, '192.168.1.6');
  const told = [...world.logs.records].filter(({ message }) => message.includes('addresses of the node'));
  assert.equal(told.length, 1);
  await stop();
});

test('fixes the labels of operating system and architecture, and keeps all others', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world, { labels: { pool: 'a' } });
  const node = world.api.node();
  const labels = { ...node?.metadata?.labels, 'kubernetes.io/arch': 'arm64', pool: 'b' };
  world.api.put(apiResources.nodes, { ...node, metadata: { ...node?.metadata, labels } });
  world.watched = () => world.api.node();
  await world.clock.advance(11_000);
  assert.equal(world.api.node()?.metadata?.labels?.['kubernetes.io/arch'], 'amd64');
  assert.equal(world.api.node()?.metadata?.labels?.['pool'], 'b');
  await stop();
});

test('uses cached data first, then reads, and uses a new connection from the second failure on', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  world.pressures.add('disk');
  let failures = 0;
  world.api.refuse = ({ verb, path }) => {
    if (verb !== 'patch' || !path.includes('/nodes/') || failures === 3) return undefined;
    failures++;
    return refusal(500, 'no');
  };
  const gets = () => world.api.count('get', '/nodes/');
  assert.equal(gets(), 0);
  await world.clock.advance(12_000);
  assert.equal(conditionOf(world.api.node(), 'DiskPressure')?.status, 'True');
  assert.equal(gets(), 3);
  assert.equal(world.redials, 2);
  assert.equal(world.reasons.filter((reason) => reason === 'NodeHasDiskPressure').length, 1);
  await stop();
});

test('stops after five attempts until the next pass', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  world.pressures.add('disk');
  world.api.refuse = ({ path }) => (path.includes('/nodes/') ? refusal(500, 'no') : undefined);
  await world.clock.advance(12_000);
  const tries = world.api.calls.filter(({ path }) => path.includes('/nodes/n1')).length - 1;
  assert.equal(tries, 5);
  world.api.refuse = () => undefined;
  await world.clock.advance(12_000);
  assert.equal(conditionOf(world.api.node(), 'DiskPressure')?.status, 'True');
  await stop();
});

test('recreates a deleted Node after a minute, not before', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world, { labels: { pool: 'a' } });
  world.watched = () => world.api.node();
  await world.clock.advance(20_000);
  world.api.remove();
  const removedMs = world.clock.monotonicMs();
  await world.clock.advance(59_000);
  assert.equal(world.api.node(), undefined);
  assert.ok(await world.clock.advanceUntil(() => world.api.node() !== undefined, 15_000));
  const waitedMs = world.clock.monotonicMs() - removedMs;
  assert.ok(waitedMs >= 60_000 && waitedMs <= 71_000, `${waitedMs}`);
  assert.equal(world.api.node()?.metadata?.labels?.['pool'], 'a');
  assert.equal(world.api.count('create', '/nodes/'), 2);
  await stop();
});

test('detects a deleted Node that the watch never delivered', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  await world.clock.advance(5_000);
  world.api.remove();
  await world.clock.advance(105_000);
  assert.equal(world.api.count('create', '/nodes/'), 2);
  await stop();
});

test('exits or waits after a Node deletion as configured', async () => {
  const exits = new NodeWorld();
  const { ended } = await started(exits, { recreation: 'exit' });
  exits.watched = () => exits.api.node();
  await exits.clock.advance(5_000);
  exits.api.remove();
  await exits.clock.advance(75_000);
  assert.equal(((await ended) as { code?: string }).code, 'NODE_GONE');
  assert.equal(exits.clock.pendingTimers, 0);

  const stays = new NodeWorld();
  const { stop } = await started(stays, { recreation: 'stay' });
  stays.watched = () => stays.api.node();
  await stays.clock.advance(5_000);
  stays.api.remove();
  const updates = stays.api.count('update');
  await stays.clock.advance(300_000);
  assert.equal(stays.api.count('create', '/nodes/'), 1);
  assert.equal(stays.api.count('update'), updates, 'no lease without a Node');
  await stop();
});

test('does not take an unavailable API server for a deleted Node', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world, { recreation: 'exit' });
  world.api.refuse = () => refusal(503, 'away');
  await world.clock.advance(300_000);
  world.api.refuse = () => undefined;
  await world.clock.advance(20_000);
  assert.equal(world.api.count('create', '/nodes/'), 1);
  await stop();
});

test('adopts a Node that another client recreated', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world, { labels: { pool: 'a' } });
  world.watched = () => world.api.node();
  await world.clock.advance(1_000);
  world.api.put(apiResources.nodes, { metadata: { name: 'n1', uid: 'other' } });
  await world.clock.advance(11_000);
  const node = world.api.node();
  assert.equal(node?.metadata?.uid, 'other');
  assert.equal(node?.metadata?.labels?.['pool'], 'a');
  assert.equal(conditionOf(node, 'Ready')?.status, 'True');
  await stop();
});

test('does not patch a new Node of the same name', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  const uid = world.api.node()?.metadata?.uid;
  world.pressures.add('pid');
  await world.clock.advance(11_000);
  assert.ok(uid);
  assert.match(JSON.stringify(world.api.last('patch')?.body), new RegExp(`"uid":"${uid}"`));
  await stop();
});

test('sends events for cordon and uncordon', async () => {
  const world = new NodeWorld();
  const { stop } = await started(world);
  world.watched = () => world.api.node();
  for (const unschedulable of [true, false]) {
    const node = world.api.node();
    world.api.put(apiResources.nodes, { ...node, spec: { unschedulable } } as never);
    await world.clock.advance(22_000);
  }
  assert.deepEqual(world.reasons.slice(-2), ['NodeNotSchedulable', 'NodeSchedulable']);
  assert.equal(statusPatches(world), 0);
  await stop();
});

test('sends one event after a reboot', async () => {
  const world = new NodeWorld();
  const first = await started(world);
  await first.stop();
  world.files.set('/proc/sys/kernel/random/boot_id', 'boot-2\n');
  const second = await started(world);
  await world.clock.advance(60_000);
  const reboots = world.events.filter(({ reason }) => reason === 'Rebooted');
  assert.deepEqual(reboots, [
    { type: 'Warning', reason: 'Rebooted', message: 'Node n1 has been rebooted, boot id: boot-2' },
  ]);
  await second.stop();
});

test('sends pod CIDRs to the runtime when they change, and again after a failure', async () => {
  const world = new NodeWorld();
  let fail = true;
  const deps = world.deps();
  const usePodCidrs = async (cidrs: readonly string[]) => {
    world.cidrs.push(cidrs);
    if (fail) throw new Error('busy');
  };
  const { stop } = await started(world, {}, { runtime: { ...deps.runtime, usePodCidrs } });
  world.watched = () => world.api.node();
  world.api.put(apiResources.nodes, {
    ...world.api.node(),
    spec: { podCIDRs: ['10.244.1.0/24', 'fd00::/64'] },
  } as never);
  await world.clock.advance(11_000);
  fail = false;
  await world.clock.advance(40_000);
  assert.deepEqual(world.cidrs, [
    ['10.244.1.0/24', 'fd00::/64'],
    ['10.244.1.0/24', 'fd00::/64'],
  ]);
  await stop();
});

test('sends pod CIDRs to a waiting runtime while the node starts', async () => {
  const world = new NodeWorld();
  world.problems = ['container runtime network is not ready'];
  const deps = world.deps();
  const usePodCidrs = async () => {
    world.problems = [];
  };
  const { stop } = await started(world, {}, { runtime: { ...deps.runtime, usePodCidrs } });
  world.watched = () => world.api.node();
  await world.clock.advance(1_000);
  const node = world.api.node();
  world.api.put(apiResources.nodes, { ...node, spec: { podCIDRs: ['10.244.1.0/24'] } });
  await world.clock.advance(200);
  assert.equal(conditionOf(world.api.node(), 'Ready')?.status, 'True');
  await stop();
});

test('publishes everything else as usual while a node starts slowly', async () => {
  const world = new NodeWorld();
  world.problems = ['container runtime is down'];
  const { stop } = await started(world);
  world.pressures.add('disk');
  await world.clock.advance(10_200);
  assert.equal(conditionOf(world.api.node(), 'DiskPressure')?.status, 'True');
  assert.equal(statusPatches(world), 1);
  await stop();
});

test('publishes volumes only when those in use are known, and then notifies the volume manager', async () => {
  const world = new NodeWorld();
  world.api.put(apiResources.nodes, {
    metadata: { name: 'n1', uid: 'u1' },
    status: { volumesInUse: ['old'], volumesAttached: [{ name: 'old', devicePath: '/dev/x' }] },
  } as never);
  let inUse: readonly string[] | undefined;
  const reported: (readonly string[])[] = [];
  const volumes = { inUse: () => inUse, reported: (names: readonly string[]) => void reported.push(names) };
  const { stop } = await started(world, {}, { volumes });
  assert.deepEqual(world.api.node()?.status?.volumesInUse, ['old']);
  inUse = ['new'];
  await world.clock.advance(11_000);
  assert.deepEqual(world.api.node()?.status?.volumesInUse, ['new']);
  assert.deepEqual(reported.at(-1), ['new']);
  assert.deepEqual(world.api.node()?.status?.volumesAttached, [{ name: 'old', devicePath: '/dev/x' }]);
  await stop();
});

test('stops sending fields that an older API server drops', async () => {
  const world = new NodeWorld();
  world.api.forgetful = (object) => {
    const { status, ...others } = object as { status?: Record<string, unknown> };
    const { features: _, ...known } = status ?? {};
    return { ...others, status: known } as never;
  };
  const { stop } = await started(world);
  await world.clock.advance(100_000);
  assert.equal(statusPatches(world), 0);
  await stop();
});

test('limits the delay of a hanging runtime', async () => {
  const world = new NodeWorld();
  const deps = world.deps();
  const runtime = {
    ...deps.runtime,
    check: () => new Promise<void>(() => {}),
    images: () => new Promise<never>(() => {}),
  };
  const { stop } = await started(world, {}, { runtime });
  await world.clock.advance(15_100);
  assert.ok(world.api.node());
  await stop();
});

test('reports a bug in an input and continues', async () => {
  const world = new NodeWorld();
  const deps = world.deps();
  let isBroken = false;
  const problems = () => {
    if (isBroken) throw new Error('broken provider');
    return world.problems;
  };
  const { stop } = await started(world, {}, { health: { ...deps.health, problems } });
  isBroken = true;
  await world.clock.advance(30_000);
  assert.match(JSON.stringify([...world.logs.records]), /broken provider/);
  isBroken = false;
  world.pressures.add('pid');
  await world.clock.advance(11_000);
  assert.equal(conditionOf(world.api.node(), 'PIDPressure')?.status, 'True');
  await stop();
});

test('leaves nothing running when it stops', async () => {
  const world = new NodeWorld();
  world.api.refuse = () => refusal(503, 'away');
  const { stop } = await started(world);
  await stop();
});
