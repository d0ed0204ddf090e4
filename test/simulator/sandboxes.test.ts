import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { SimulatedNode } from '../fakes/simulated-node.ts';

const says = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof GrpcError && error.grpcCode === code && message.test(error.message);

test('a new sandbox is ready, has its own address, and keeps its config', async () => {
  using node = new SimulatedNode({ podCidr: '10.1.2.0/24' });
  const one = await node.sandboxStatus(await node.sandbox(node.podConfig('one')));
  const two = await node.sandboxStatus(await node.sandbox(node.podConfig('two')));
  assert.equal(one.state, 'SANDBOX_READY');
  assert.deepEqual([one.network?.ip, two.network?.ip], ['10.1.2.2', '10.1.2.3']);
  assert.deepEqual(one.metadata, { name: 'one', namespace: 'ns', uid: 'uid-one', attempt: 0 });
  assert.ok(one.createdAt < two.createdAt);
});

test('a sandbox is not listed before it is ready', async () => {
  using node = new SimulatedNode();
  const running = node.cri.runPodSandbox({ config: node.podConfig() }, node.options);
  await node.clock.advance(2);
  const list = node.cri.listPodSandbox({}, node.options);
  assert.deepEqual((await node.done(list)).items, []);
  await node.done(running);
});

test('a sandbox on the host network has no address and needs no network', async () => {
  using node = new SimulatedNode();
  node.runtime.setNetworkReady('not-ready');
  const config = node.podConfig();
  const linux = { securityContext: { namespaceOptions: { network: 'NODE' as const } } };
  const status = await node.sandboxStatus(await node.sandbox({ ...config, linux }));
  assert.equal(status.network?.ip, '');
  assert.equal(status.linux?.namespaces?.options?.network, 'NODE');
});

test('without a network, creating a sandbox fails and leaves nothing behind, and the runtime reports NetworkReady false', async () => {
  using node = new SimulatedNode();
  node.runtime.setNetworkReady('not-ready');
  await assert.rejects(
    node.sandbox(),
    says('UNKNOWN', /failed to setup network .*cni plugin not initialized/),
  );
  assert.deepEqual(node.runtime.held(), {
    sandboxes: 0,
    containers: 0,
    names: 0,
    addresses: 0,
    calls: 0,
    subscribers: 0,
  });
  const { status } = await node.done(node.cri.status({}, node.options));
  const network = status?.conditions.find(({ type }) => type === 'NetworkReady');
  assert.deepEqual([network?.status, network?.reason], [false, 'NetworkPluginNotReady']);
  node.runtime.setNetworkReady('ready');
  await node.sandbox();
});

test('pod addresses can be exhausted, and are released with their sandbox', async () => {
  using node = new SimulatedNode({ podCidr: '10.0.0.0/29' });
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push(await node.sandbox(node.podConfig(`p${i}`)));
  await assert.rejects(node.sandbox(node.podConfig('more')), says('UNKNOWN', /no IP addresses available/));
  await node.done(node.cri.stopPodSandbox({ podSandboxId: ids[0] ?? '' }, node.options));
  await node.sandbox(node.podConfig('more'));
});

test('a sandbox name is reserved for one sandbox until it is removed', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox();
  const taken = says(
    'UNKNOWN',
    new RegExp(`^failed to reserve sandbox name .* is reserved for "${podSandboxId}"$`),
  );
  await assert.rejects(node.sandbox(), taken);
  await node.done(node.cri.stopPodSandbox({ podSandboxId }, node.options));
  await assert.rejects(node.sandbox(), taken);
  await node.sandbox(node.podConfig('pod', 1));
  await node.done(node.cri.removePodSandbox({ podSandboxId }, node.options));
  assert.notEqual(await node.sandbox(), podSandboxId);
});

test('two concurrent calls for the same sandbox create only one sandbox', async () => {
  using node = new SimulatedNode();
  const calls = [1, 2].map(() => node.cri.runPodSandbox({ config: node.podConfig() }, node.options));
  const results = await node.done(Promise.allSettled(calls));
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  assert.equal(node.runtime.sandboxes().length, 1);
});

test("invalid sandbox requests get containerd's errors", async () => {
  using node = new SimulatedNode();
  await assert.rejects(node.sandbox({}), says('UNKNOWN', /^sandbox config must include metadata$/));
  const request = { config: node.podConfig(), runtimeHandler: 'kata' };
  await assert.rejects(
    node.done(node.cri.runPodSandbox(request, node.options)),
    says('UNKNOWN', /no runtime for "kata" is configured/),
  );
  await assert.rejects(node.sandboxStatus(''), says('UNKNOWN', /Prefix can't be empty/));
  await assert.rejects(node.sandboxStatus('nope'), says('NOT_FOUND', /try to find sandbox: not found/));
});

test('stopping a sandbox kills its containers, releases its address, and may be repeated', async () => {
  using node = new SimulatedNode();
  const { podSandboxId, containerId } = await node.pod();
  const stop = () => node.done(node.cri.stopPodSandbox({ podSandboxId }, node.options));
  await stop();
  await stop();
  const sandbox = await node.sandboxStatus(podSandboxId);
  assert.deepEqual([sandbox.state, sandbox.network?.ip], ['SANDBOX_NOTREADY', '']);
  const container = await node.status(containerId);
  assert.deepEqual([container.state, container.exitCode], ['CONTAINER_EXITED', 137]);
  assert.equal(node.runtime.held().addresses, 0);
});

test('removing a running sandbox removes its containers too', async () => {
  using node = new SimulatedNode();
  const { podSandboxId } = await node.pod();
  const remove = () => node.done(node.cri.removePodSandbox({ podSandboxId }, node.options));
  await remove();
  await remove();
  const { sandboxes, containers, names, addresses } = node.runtime.held();
  assert.deepEqual([sandboxes, containers, names, addresses], [0, 0, 0, 0]);
  await node.clock.advance(60_000);
  assert.equal(node.clock.pendingTimers, 0);
});

test('a sandbox whose process exits is not ready, and its containers keep running', async () => {
  using node = new SimulatedNode();
  const { podSandboxId, containerId } = await node.pod();
  node.runtime.crashSandbox(podSandboxId);
  await node.clock.advance(100);
  assert.equal((await node.sandboxStatus(podSandboxId)).state, 'SANDBOX_NOTREADY');
  assert.equal((await node.status(containerId)).state, 'CONTAINER_RUNNING');
  assert.notEqual((await node.sandboxStatus(podSandboxId)).network?.ip, '');
  await node.done(node.cri.stopPodSandbox({ podSandboxId }, node.options));
  assert.equal((await node.status(containerId)).exitCode, 137);
});

test('a sandbox ID may be shortened as long as it is unique', async () => {
  using node = new SimulatedNode();
  const ids: string[] = [];
  for (let i = 0; i < 17; i++) ids.push(await node.sandbox(node.podConfig(`p${i}`)));
  const first = ids[0] ?? '';
  assert.equal((await node.sandboxStatus(first.slice(0, 12))).id, first);
  const common = [...'0123456789abcdef'].find((digit) => ids.filter((id) => id.startsWith(digit)).length > 1);
  await assert.rejects(
    node.sandboxStatus(common ?? ''),
    says('UNKNOWN', /multiple IDs found with provided prefix/),
  );
});

test('a list contains only sandboxes that match all filters', async () => {
  using node = new SimulatedNode();
  const config = node.podConfig('a');
  const a = await node.sandbox({ ...config, labels: { app: 'x', tier: 'web' } });
  const b = await node.sandbox({ ...node.podConfig('b'), labels: { app: 'x' } });
  await node.done(node.cri.stopPodSandbox({ podSandboxId: b }, node.options));
  const list = async (filter: Parameters<typeof node.cri.listPodSandbox>[0]['filter']) => {
    const { items } = await node.done(node.cri.listPodSandbox({ filter }, node.options));
    return items.map(({ id }) => id).sort();
  };
  assert.deepEqual(await list(undefined), [a, b].sort());
  assert.deepEqual(await list({ labelSelector: { app: 'x' } }), [a, b].sort());
  assert.deepEqual(await list({ labelSelector: { app: 'x', tier: 'web' } }), [a]);
  assert.deepEqual(await list({ labelSelector: { app: 'y' } }), []);
  assert.deepEqual(await list({ state: { state: 'SANDBOX_READY' } }), [a]);
  assert.deepEqual(await list({ state: { state: 'SANDBOX_NOTREADY' }, labelSelector: { tier: 'web' } }), []);
  assert.deepEqual(await list({ id: b.slice(0, 10) }), [b]);
  assert.deepEqual(await list({ id: 'nope' }), []);
});
