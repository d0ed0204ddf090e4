import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { busybox, SimulatedNode } from '../fakes/simulated-node.ts';

const says = (code: string) => (error: unknown) => error instanceof GrpcError && error.grpcCode === code;

test('when the runtime is killed, all calls and streams end, and new ones fail until it has restarted', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod("trap '' TERM; sleep 1000");
  const stop = assert.rejects(
    node.cri.stopContainer({ containerId, timeout: 600n }, node.options),
    says('UNAVAILABLE'),
  );
  const read = async () => {
    for await (const _ of node.transport.containerdEvents.subscribe({}, node.options));
  };
  const stream = assert.rejects(read(), says('UNAVAILABLE'));
  await node.clock.advance(100);
  node.runtime.restart({ state: 'kept', downMs: 5_000 });
  await Promise.all([stop, stream]);
  assert.deepEqual([node.runtime.held().calls, node.runtime.held().subscribers], [0, 0]);
  await assert.rejects(node.done(node.cri.version({}, node.options)), says('UNAVAILABLE'));
  await node.clock.advance(4_900);
  assert.equal(node.runtime.isUp, false);
  await node.clock.advance(100);
  await node.done(node.cri.version({}, node.options));
});

test('a restarted runtime that kept its state shows no change, and containers kept running', async () => {
  using node = new SimulatedNode({ latency: () => 0 });
  const { podSandboxId, containerId } = await node.pod('while true; do echo tick; sleep 1; done');
  const created = await node.create(podSandboxId, { metadata: { name: 'created' } });
  const before = await node.status(containerId);
  node.runtime.restart({ state: 'kept', downMs: 60_000 });
  await node.clock.advance(60_000);
  assert.deepEqual(await node.status(containerId), before);
  assert.equal((await node.status(created)).state, 'CONTAINER_CREATED');
  assert.equal((await node.sandboxStatus(podSandboxId)).state, 'SANDBOX_READY');
  assert.ok((node.files.read('/logs/pod/main.log') ?? '').split('\n').length > 59);
  await assert.rejects(node.sandbox(), /is reserved for/);
  await node.stop(containerId);
  assert.equal((await node.status(containerId)).exitCode, 137);
});

test('an exit during the downtime is observed after the restart', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod('sleep 10; exit 9');
  node.runtime.restart({ state: 'kept', downMs: 60_000 });
  await node.clock.advance(60_000);
  const ended = await node.status(containerId);
  assert.deepEqual([ended.state, ended.exitCode, ended.reason], ['CONTAINER_EXITED', 9, 'Error']);
  const ranNs = ended.finishedAt - ended.startedAt;
  assert.ok(ranNs >= 10_000_000_000n && ranNs < 10_100_000_000n);
});

test('an exit that was observed but not recorded before the kill is not lost', async () => {
  using node = new SimulatedNode({ latency: (step) => (step === 'exit-seen' ? 1_000 : 0) });
  const { containerId } = await node.pod('sleep 1; exit 4');
  await node.clock.advance(1_500);
  assert.equal((await node.status(containerId)).state, 'CONTAINER_RUNNING');
  node.runtime.restart({ state: 'kept', downMs: 100 });
  await node.clock.advance(100);
  assert.equal((await node.status(containerId)).exitCode, 4);
});

test('after a machine restart all containers have exited with unknown codes', async () => {
  using node = new SimulatedNode();
  const { podSandboxId, containerId } = await node.pod();
  node.runtime.restart({ state: 'kept', processes: 'killed' });
  assert.equal(node.runtime.runningContainers().length, 0);
  await node.clock.advance(1_000);
  const ended = await node.status(containerId);
  assert.deepEqual([ended.state, ended.exitCode, ended.reason], ['CONTAINER_EXITED', 255, 'Unknown']);
  assert.equal((await node.sandboxStatus(podSandboxId)).state, 'SANDBOX_NOTREADY');
  await node.done(node.cri.removePodSandbox({ podSandboxId }, node.options));
  assert.equal(node.runtime.held().addresses, 0);
});

test('a restarted runtime that lost its state has only its images', async () => {
  using node = new SimulatedNode();
  await node.pod();
  node.runtime.restart({ state: 'lost' });
  await node.clock.advance(1_000);
  assert.deepEqual((await node.done(node.cri.listContainers({}, node.options))).containers, []);
  assert.deepEqual((await node.done(node.cri.listPodSandbox({}, node.options))).items, []);
  assert.equal(node.runtime.runningContainers().length, 0);
  const { sandboxes, containers, names, addresses } = node.runtime.held();
  assert.deepEqual([sandboxes, containers, names, addresses], [0, 0, 0, 0]);
  await node.pod();
  node.runtime.restart({ state: 'lost', images: 'lost' });
  await node.clock.advance(1_000);
  assert.deepEqual((await node.done(node.images.listImages({}, node.options))).images, []);
});

test('records that a restarted runtime cannot load are unknown until they are stopped', async () => {
  using node = new SimulatedNode();
  const { podSandboxId, containerId } = await node.pod();
  node.runtime.restart({ state: 'unknown' });
  await node.clock.advance(1_000);
  assert.equal((await node.status(containerId)).state, 'CONTAINER_UNKNOWN');
  assert.equal((await node.sandboxStatus(podSandboxId)).state, 'SANDBOX_NOTREADY');
  assert.equal(node.runtime.runningContainers().length, 1);
  await assert.rejects(node.start(containerId), /CONTAINER_UNKNOWN/);
  await node.stop(containerId, 0n);
  const ended = await node.status(containerId);
  assert.deepEqual([ended.state, ended.exitCode], ['CONTAINER_EXITED', 137]);
  await node.done(node.cri.removePodSandbox({ podSandboxId }, node.options));
  assert.deepEqual(node.runtime.sandboxes(), []);
});

test('an unknown container whose process has exited becomes exited when it is stopped', async () => {
  for (const processes of ['kept', 'killed'] as const) {
    using node = new SimulatedNode();
    const { containerId } = await node.pod('sleep 5; exit 6');
    node.runtime.restart({ state: 'unknown', processes, downMs: 60_000 });
    await node.clock.advance(60_000);
    assert.equal((await node.status(containerId)).state, 'CONTAINER_UNKNOWN');
    await node.stop(containerId, 0n);
    const ended = await node.status(containerId);
    assert.deepEqual([ended.state, ended.exitCode], ['CONTAINER_EXITED', processes === 'kept' ? 6 : 255]);
  }
});

test('an operation that the kill interrupts has a partial effect, or none', async () => {
  const observed = new Set<string>();
  for (let seed = 0; seed < 30; seed++) {
    using node = new SimulatedNode({ seed, latency: () => 10 });
    const podSandboxId = await node.sandbox(node.podConfig('old'));
    const config = { metadata: { name: 'main' }, image: { image: busybox }, command: ['true'] };
    const request = { podSandboxId, sandboxConfig: node.podConfig('old'), config };
    const created = node.cri.createContainer(request, node.options).catch(() => undefined);
    const begun = node.cri
      .runPodSandbox({ config: node.podConfig('new') }, node.options)
      .catch(() => undefined);
    await node.clock.advance(15);
    node.runtime.restart({ state: 'kept' });
    await Promise.all([created, begun]);
    await node.clock.advance(1_000);
    const fresh = node.runtime.sandboxes().find(({ podName }) => podName === 'new');
    assert.ok(fresh === undefined || (fresh.state === 'SANDBOX_NOTREADY' && !fresh.running));
    observed.add(`${fresh?.state} ${node.runtime.containers().length}`);
    if (fresh !== undefined)
      await node.done(node.cri.removePodSandbox({ podSandboxId: fresh.id }, node.options));
    await node.sandbox(node.podConfig('new'));
  }
  assert.ok(observed.size >= 3, [...observed].join(', '));
});

test('a container start that the kill interrupted can be repeated', async () => {
  using node = new SimulatedNode({ latency: () => 10 });
  const containerId = await node.create(await node.sandbox());
  const start = assert.rejects(node.cri.startContainer({ containerId }, node.options), says('UNAVAILABLE'));
  await node.clock.advance(15);
  node.runtime.restart({ state: 'kept' });
  await start;
  await node.clock.advance(1_000);
  assert.equal((await node.status(containerId)).state, 'CONTAINER_CREATED');
  await node.start(containerId);
});

test('when a connection breaks, its calls end and the runtime undoes their work', async () => {
  using node = new SimulatedNode({ latency: () => 10 });
  const call = assert.rejects(
    node.cri.runPodSandbox({ config: node.podConfig() }, node.options),
    says('UNAVAILABLE'),
  );
  await node.clock.advance(15);
  node.runtime.disconnect();
  await call;
  await node.clock.advance(100);
  assert.equal(node.runtime.held().sandboxes, 0);
  await node.sandbox();
});

test('closing one client transport ends its calls and does not affect other clients', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod("trap '' TERM; sleep 1000");
  const other = node.runtime.transport();
  const mine = node.cri.stopContainer({ containerId, timeout: 10n }, node.options);
  const theirs = assert.rejects(
    other.runtime.stopContainer({ containerId, timeout: 600n }, node.options),
    says('UNAVAILABLE'),
  );
  await node.clock.advance(5);
  other.close();
  await theirs;
  await node.done(mine);
  await assert.rejects(other.runtime.version({}, node.options), says('CANCELLED'));
});

test('closing the runtime leaves no timer behind', async () => {
  const node = new SimulatedNode();
  await node.pod('while true; do echo x; sleep 1; done');
  node.cri.stopContainer({ containerId: 'nope' }, node.options).catch(() => {});
  await node.clock.advance(5_000);
  node.runtime.close();
  assert.equal(node.clock.pendingTimers, 0);
});
