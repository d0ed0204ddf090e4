import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, NodeWorld, refusal } from '../../test/fakes/node-world.ts';
import { apiResources } from '../api/index.ts';
import { NodeController, type NodeControllerDeps } from './node-controller.ts';
import type { NodeSettings } from './settings.ts';

async function started(
  environment: NodeWorld,
  settings: Partial<NodeSettings> = {},
  more: Partial<NodeControllerDeps> = {},
) {
  const keeper = new NodeController({ ...environment.deps(settings), ...more });
  const controller = new AbortController();
  const ended = keeper.run(controller.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  await environment.clock.advance(50);
  const stop = async () => {
    controller.abort(new Error('stopped'));
    await ended;
    assert.equal(environment.clock.pendingTimers, 0);
  };
  return { keeper, stop, ended };
}

const statusPatches = (environment: NodeWorld) => environment.api.count('patch', '/nodes/n1/status');

test('makes the node ready in under two seconds with a single patch when the runtime starts', async () => {
  const environment = new NodeWorld();
  environment.problems = ['container runtime is down'];
  const { stop } = await started(environment);
  assert.equal(conditionOf(environment.api.node(), 'Ready')?.status, 'False');
  const before = environment.api.calls.filter(({ path }) => path.includes('/nodes/')).length;
  await environment.clock.advance(1_000);
  assert.equal(environment.api.calls.filter(({ path }) => path.includes('/nodes/')).length, before);
  environment.problems = [];
  await environment.clock.advance(150);
  assert.equal(conditionOf(environment.api.node(), 'Ready')?.status, 'True');
  assert.equal(statusPatches(environment), 1);
  assert.ok(environment.reasons.includes('NodeReady'));
  assert.ok(environment.runtimeChecks >= 10, 'the runtime is checked each time');
  assert.ok(environment.clock.monotonicMs() < 2_000);
  await stop();
});

test('checks the runtime before the first status update', async () => {
  const environment = new NodeWorld();
  environment.problems = ['container runtime status check may not have completed yet'];
  environment.onCheck = () => {
    environment.problems = [];
  };
  const { stop } = await started(environment);
  assert.equal(conditionOf(environment.api.node(), 'Ready')?.status, 'True');
  assert.equal(statusPatches(environment), 0);
  await stop();
});

test('logs after two minutes that a node is still not ready, and continues with regular checks', async () => {
  const environment = new NodeWorld();
  environment.problems = ['container runtime is down'];
  const { stop } = await started(environment);
  await environment.clock.advance(121_000);
  assert.match(JSON.stringify([...environment.logs.records]), /did not become ready in time/);
  const [looks, checks] = [environment.looks, environment.runtimeChecks];
  await environment.clock.advance(30_000);
  assert.ok(environment.looks - looks <= 4);
  assert.equal(environment.runtimeChecks, checks);
  environment.problems = [];
  await environment.clock.advance(10_500);
  assert.equal(conditionOf(environment.api.node(), 'Ready')?.status, 'True');
  await stop();
});

test('writes an unchanged status about every five minutes', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  await environment.clock.advance(149_000);
  assert.equal(statusPatches(environment), 0);
  await environment.clock.advance(320_000);
  assert.equal(statusPatches(environment), 1);
  const body = JSON.stringify(environment.api.last('patch')?.body);
  assert.match(body, /lastHeartbeatTime/);
  assert.doesNotMatch(body, /capacity|addresses|nodeInfo|images|lastTransitionTime/);
  await environment.clock.advance(300_000 + 11_000);
  assert.equal(statusPatches(environment), 2);
  await stop();
});

test('writes a changed status at the next regular check, and immediately when a check is requested', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  await environment.clock.advance(1_000);
  environment.pressures.add('memory');
  await environment.clock.advance(10_400);
  assert.equal(conditionOf(environment.api.node(), 'MemoryPressure')?.status, 'True');
  assert.equal(environment.reasons.at(-1), 'NodeHasInsufficientMemory');
  await environment.clock.advance(1_000);
  environment.problems = ['node is shutting down'];
  environment.hints.raise();
  await environment.clock.advance(10);
  assert.equal(conditionOf(environment.api.node(), 'Ready')?.message, 'node is shutting down');
  await stop();
});

test('limits requested status checks to two a second', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  const before = environment.looks;
  for (let step = 0; step < 100; step++) {
    environment.hints.raise();
    await environment.clock.advance(50);
  }
  assert.ok(environment.looks - before <= 11);
  assert.ok(environment.looks - before >= 9);
  await stop();
});

test('publishes complete node addresses, and keeps the published addresses when the current ones cannot be read', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  assert.equal(environment.api.node()?.status?.addresses?.[0]?.address, '192.168.1.5');
  environment.addresses = [{ interface: 'eth0', address: '192.168.1.6' }];
  await environment.clock.advance(11_000);
  const body = environment.api.last('patch')?.body as { status: { addresses: unknown } };
  assert.deepEqual(body.status.addresses, [
    { type: 'InternalIP', address: '192.168.1.6' },
    { type: 'Hostname', address: 'n1' },
    { $patch: 'replace' },
  ]);
  environment.addresses = [];
  await environment.clock.advance(40_000);
  assert.equal(environment.api.node()?.status?.addresses?.[0]?.address, '192.168.1.6');
  const reported = [...environment.logs.records].filter(({ message }) =>
    message.includes('addresses of the node'),
  );
  assert.equal(reported.length, 1);
  await stop();
});

test('restores the labels of operating system and architecture on the Node, and keeps changes of all other labels', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment, { labels: { pool: 'a' } });
  const node = environment.api.node();
  const labels = { ...node?.metadata?.labels, 'kubernetes.io/arch': 'arm64', pool: 'b' };
  environment.api.put(apiResources.nodes, { ...node, metadata: { ...node?.metadata, labels } });
  environment.watched = () => environment.api.node();
  await environment.clock.advance(11_000);
  assert.equal(environment.api.node()?.metadata?.labels?.['kubernetes.io/arch'], 'amd64');
  assert.equal(environment.api.node()?.metadata?.labels?.['pool'], 'b');
  await stop();
});

test('a status update uses the cached Node for the first attempt, reads the Node for later attempts, and uses a new connection from the second failure on', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  environment.pressures.add('disk');
  let failures = 0;
  environment.api.refuse = ({ verb, path }) => {
    if (verb !== 'patch' || !path.includes('/nodes/') || failures === 3) return undefined;
    failures++;
    return refusal(500, 'no');
  };
  const gets = () => environment.api.count('get', '/nodes/');
  assert.equal(gets(), 0);
  await environment.clock.advance(12_000);
  assert.equal(conditionOf(environment.api.node(), 'DiskPressure')?.status, 'True');
  assert.equal(gets(), 3);
  assert.equal(environment.redials, 2);
  assert.equal(environment.reasons.filter((reason) => reason === 'NodeHasDiskPressure').length, 1);
  await stop();
});

test('stops retrying after five failed status updates, until the next regular check', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  environment.pressures.add('disk');
  environment.api.refuse = ({ path }) => (path.includes('/nodes/') ? refusal(500, 'no') : undefined);
  await environment.clock.advance(12_000);
  const tries = environment.api.calls.filter(({ path }) => path.includes('/nodes/n1')).length - 1;
  assert.equal(tries, 5);
  environment.api.refuse = () => undefined;
  await environment.clock.advance(12_000);
  assert.equal(conditionOf(environment.api.node(), 'DiskPressure')?.status, 'True');
  await stop();
});

test('recreates a deleted Node after a minute, not earlier', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment, { labels: { pool: 'a' } });
  environment.watched = () => environment.api.node();
  await environment.clock.advance(20_000);
  environment.api.remove();
  const removedMs = environment.clock.monotonicMs();
  await environment.clock.advance(59_000);
  assert.equal(environment.api.node(), undefined);
  assert.ok(await environment.clock.advanceUntil(() => environment.api.node() !== undefined, 15_000));
  const waitedMs = environment.clock.monotonicMs() - removedMs;
  assert.ok(waitedMs >= 60_000 && waitedMs <= 71_000, `${waitedMs}`);
  assert.equal(environment.api.node()?.metadata?.labels?.['pool'], 'a');
  assert.equal(environment.api.count('create', '/nodes/'), 2);
  await stop();
});

test('detects the deletion of the Node even if the watch never delivers it', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  await environment.clock.advance(5_000);
  environment.api.remove();
  await environment.clock.advance(105_000);
  assert.equal(environment.api.count('create', '/nodes/'), 2);
  await stop();
});

test('exits or waits for a new Node after a Node deletion, as configured', async () => {
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

test('does not take an unavailable API server for the deletion of the Node', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment, { recreation: 'exit' });
  environment.api.refuse = () => refusal(503, 'away');
  await environment.clock.advance(300_000);
  environment.api.refuse = () => undefined;
  await environment.clock.advance(20_000);
  assert.equal(environment.api.count('create', '/nodes/'), 1);
  await stop();
});

test('adopts a Node that another client recreated', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment, { labels: { pool: 'a' } });
  environment.watched = () => environment.api.node();
  await environment.clock.advance(1_000);
  environment.api.put(apiResources.nodes, { metadata: { name: 'n1', uid: 'other' } });
  await environment.clock.advance(11_000);
  const node = environment.api.node();
  assert.equal(node?.metadata?.uid, 'other');
  assert.equal(node?.metadata?.labels?.['pool'], 'a');
  assert.equal(conditionOf(node, 'Ready')?.status, 'True');
  await stop();
});

test('does not patch a new Node of the same name with the status of the old one', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  const uid = environment.api.node()?.metadata?.uid;
  environment.pressures.add('pid');
  await environment.clock.advance(11_000);
  assert.ok(uid);
  assert.match(JSON.stringify(environment.api.last('patch')?.body), new RegExp(`"uid":"${uid}"`));
  await stop();
});

test('sends events for cordon and uncordon', async () => {
  const environment = new NodeWorld();
  const { stop } = await started(environment);
  environment.watched = () => environment.api.node();
  for (const unschedulable of [true, false]) {
    const node = environment.api.node();
    environment.api.put(apiResources.nodes, { ...node, spec: { unschedulable } } as never);
    await environment.clock.advance(22_000);
  }
  assert.deepEqual(environment.reasons.slice(-2), ['NodeNotSchedulable', 'NodeSchedulable']);
  assert.equal(statusPatches(environment), 0);
  await stop();
});

test('sends one event after a reboot of the machine', async () => {
  const environment = new NodeWorld();
  const first = await started(environment);
  await first.stop();
  environment.files.set('/proc/sys/kernel/random/boot_id', 'boot-2\n');
  const second = await started(environment);
  await environment.clock.advance(60_000);
  const reboots = environment.events.filter(({ reason }) => reason === 'Rebooted');
  assert.deepEqual(reboots, [
    { type: 'Warning', reason: 'Rebooted', message: 'Node n1 has been rebooted, boot id: boot-2' },
  ]);
  await second.stop();
});

test('sends pod CIDRs to the runtime when they change, and again after a failure', async () => {
  const environment = new NodeWorld();
  let fail = true;
  const deps = environment.deps();
  const usePodCidrs = async (cidrs: readonly string[]) => {
    environment.cidrs.push(cidrs);
    if (fail) throw new Error('busy');
  };
  const { stop } = await started(environment, {}, { runtime: { ...deps.runtime, usePodCidrs } });
  environment.watched = () => environment.api.node();
  environment.api.put(apiResources.nodes, {
    ...environment.api.node(),
    spec: { podCIDRs: ['10.244.1.0/24', 'fd00::/64'] },
  } as never);
  await environment.clock.advance(11_000);
  fail = false;
  await environment.clock.advance(40_000);
  assert.deepEqual(environment.cidrs, [
    ['10.244.1.0/24', 'fd00::/64'],
    ['10.244.1.0/24', 'fd00::/64'],
  ]);
  await stop();
});

test('while the node starts, sends pod CIDRs to a runtime that is not ready without them', async () => {
  const environment = new NodeWorld();
  environment.problems = ['container runtime network is not ready'];
  const deps = environment.deps();
  const usePodCidrs = async () => {
    environment.problems = [];
  };
  const { stop } = await started(environment, {}, { runtime: { ...deps.runtime, usePodCidrs } });
  environment.watched = () => environment.api.node();
  await environment.clock.advance(1_000);
  const node = environment.api.node();
  environment.api.put(apiResources.nodes, { ...node, spec: { podCIDRs: ['10.244.1.0/24'] } });
  await environment.clock.advance(200);
  assert.equal(conditionOf(environment.api.node(), 'Ready')?.status, 'True');
  await stop();
});

test('publishes a new pressure condition at the regular check even while the node is still starting', async () => {
  const environment = new NodeWorld();
  environment.problems = ['container runtime is down'];
  const { stop } = await started(environment);
  environment.pressures.add('disk');
  await environment.clock.advance(10_200);
  assert.equal(conditionOf(environment.api.node(), 'DiskPressure')?.status, 'True');
  assert.equal(statusPatches(environment), 1);
  await stop();
});

test('publishes volumesInUse only after the volume manager has reported it, and then notifies the volume manager', async () => {
  const environment = new NodeWorld();
  environment.api.put(apiResources.nodes, {
    metadata: { name: 'n1', uid: 'u1' },
    status: { volumesInUse: ['old'], volumesAttached: [{ name: 'old', devicePath: '/dev/x' }] },
  } as never);
  let inUse: readonly string[] | undefined;
  const reported: (readonly string[])[] = [];
  const volumes = { inUse: () => inUse, reported: (names: readonly string[]) => void reported.push(names) };
  const { stop } = await started(environment, {}, { volumes });
  assert.deepEqual(environment.api.node()?.status?.volumesInUse, ['old']);
  inUse = ['new'];
  await environment.clock.advance(11_000);
  assert.deepEqual(environment.api.node()?.status?.volumesInUse, ['new']);
  assert.deepEqual(reported.at(-1), ['new']);
  assert.deepEqual(environment.api.node()?.status?.volumesAttached, [{ name: 'old', devicePath: '/dev/x' }]);
  await stop();
});

test('stops sending status fields that an older API server drops', async () => {
  const environment = new NodeWorld();
  environment.api.forgetful = (object) => {
    const { status, ...others } = object as { status?: Record<string, unknown> };
    const { features: _, ...known } = status ?? {};
    return { ...others, status: known } as never;
  };
  const { stop } = await started(environment);
  await environment.clock.advance(100_000);
  assert.equal(statusPatches(environment), 0);
  await stop();
});

test('a hanging runtime delays status updates only for a limited time', async () => {
  const environment = new NodeWorld();
  const deps = environment.deps();
  const runtime = {
    ...deps.runtime,
    check: () => new Promise<void>(() => {}),
    images: () => new Promise<never>(() => {}),
  };
  const { stop } = await started(environment, {}, { runtime });
  await environment.clock.advance(15_100);
  assert.ok(environment.api.node());
  await stop();
});

test('logs an exception from a health check as a bug and continues with status updates', async () => {
  const environment = new NodeWorld();
  const deps = environment.deps();
  let isBroken = false;
  const problems = () => {
    if (isBroken) throw new Error('broken provider');
    return environment.problems;
  };
  const { stop } = await started(environment, {}, { health: { ...deps.health, problems } });
  isBroken = true;
  await environment.clock.advance(30_000);
  assert.match(JSON.stringify([...environment.logs.records]), /broken provider/);
  isBroken = false;
  environment.pressures.add('pid');
  await environment.clock.advance(11_000);
  assert.equal(conditionOf(environment.api.node(), 'PIDPressure')?.status, 'True');
  await stop();
});

test('leaves no timer or task running when the status loop stops', async () => {
  const environment = new NodeWorld();
  environment.api.refuse = () => refusal(503, 'away');
  const { stop } = await started(environment);
  await stop();
});
