import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { busybox, SimulatedNode } from '../fakes/simulated-node.ts';

const says = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof GrpcError && error.grpcCode === code && message.test(error.message);

test('a container changes from created to running to exited, each with its time', async () => {
  using node = new SimulatedNode();
  const id = await node.create(await node.sandbox(), { script: 'sleep 2; exit 3' });
  const created = await node.status(id);
  assert.equal(created.state, 'CONTAINER_CREATED');
  assert.deepEqual([created.startedAt, created.finishedAt], [0n, 0n]);
  await node.start(id);
  const running = await node.status(id);
  assert.equal(running.state, 'CONTAINER_RUNNING');
  assert.ok(running.startedAt > running.createdAt);
  const ended = await node.exited(id);
  assert.equal(ended.exitCode, 3);
  assert.equal(ended.reason, 'Error');
  const ranNs = ended.finishedAt - ended.startedAt;
  assert.ok(ranNs >= 2_000_000_000n && ranNs < 2_001_000_000n);
});

test('the exit event of a container is sent before the status shows the exit', async () => {
  using node = new SimulatedNode({ latency: (step) => (step === 'exit-seen' ? 500 : 0) });
  const { containerId } = await node.pod('sleep 1');
  await node.clock.advance(1_100);
  assert.equal(node.runtime.runningContainers().length, 0);
  assert.equal((await node.status(containerId)).state, 'CONTAINER_RUNNING');
  await node.clock.advance(500);
  assert.equal((await node.status(containerId)).state, 'CONTAINER_EXITED');
});

test('a container that cannot be started gets exit code 128 and the reason', async () => {
  using node = new SimulatedNode();
  const id = await node.create(await node.sandbox(), { command: ['/nope'] });
  await assert.rejects(node.start(id), says('UNKNOWN', /stat \/nope: no such file or directory: unknown$/));
  const status = await node.status(id);
  assert.equal(status.state, 'CONTAINER_EXITED');
  assert.equal(status.exitCode, 128);
  assert.equal(status.reason, 'StartError');
  assert.equal(status.startedAt, 0n);
  assert.match(status.message, /no such file/);
  await node.stop(id);
});

test('starting a container fails when its log cannot be opened', async () => {
  using node = new SimulatedNode();
  node.files.open = () => {
    throw Object.assign(new Error('gone'), { code: 'ENOENT' });
  };
  const id = await node.create(await node.sandbox());
  await assert.rejects(
    node.start(id),
    says('UNKNOWN', /failed to create container loggers: .* no such file/),
  );
});

test('only a container in state created can be started', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod('exit 0');
  await assert.rejects(
    node.start(containerId),
    says('UNKNOWN', /failed to set starting state for container .*: container is in CONTAINER_RUNNING state/),
  );
  await node.exited(containerId);
  await assert.rejects(node.start(containerId), says('UNKNOWN', /CONTAINER_EXITED state/));
});

test('a container that is being started cannot be started again or removed', async () => {
  using node = new SimulatedNode();
  const containerId = await node.create(await node.sandbox());
  const first = node.cri.startContainer({ containerId }, node.options);
  const second = node.cri.startContainer({ containerId }, node.options);
  const removal = node.cri.removeContainer({ containerId }, node.options);
  const results = await node.done(Promise.allSettled([first, second, removal]));
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected']);
});

test('creating a container requires a running sandbox, an existing image and an unused name', async () => {
  using node = new SimulatedNode();
  await assert.rejects(node.create('nope'), says('NOT_FOUND', /failed to find sandbox id "nope": not found/));
  const podSandboxId = await node.sandbox();
  await assert.rejects(
    node.create(podSandboxId, { image: { image: 'localhost/none:1' } }),
    says('NOT_FOUND', /failed to resolve image "localhost\/none:1": not found/),
  );
  const id = await node.create(podSandboxId);
  await assert.rejects(
    node.create(podSandboxId),
    says('UNKNOWN', new RegExp(`name "main_pod_ns_uid-pod_0" is reserved for "${id}"`)),
  );
  await node.done(node.cri.stopPodSandbox({ podSandboxId }, node.options));
  await assert.rejects(
    node.create(podSandboxId, { metadata: { name: 'other' } }),
    says('NOT_FOUND', /no running task found/),
  );
});

test('a container without a command uses the command of its image', async () => {
  using node = new SimulatedNode({
    images: [
      { reference: 'localhost/a:1', entrypoint: ['echo', 'entry'], command: ['cmd'] },
      { reference: 'localhost/empty:1' },
    ],
  });
  const podSandboxId = await node.sandbox();
  const plain = { image: { image: 'localhost/a:1' }, command: [] };
  await node.exited(await node.start(await node.create(podSandboxId, { ...plain, logPath: 'a.log' })));
  assert.match(node.files.read('/logs/pod/a.log') ?? '', /stdout F entry cmd\n$/);
  const withArgs = { ...plain, args: ['mine'], metadata: { name: 'b' }, logPath: 'b.log' };
  await node.exited(await node.start(await node.create(podSandboxId, withArgs)));
  assert.match(node.files.read('/logs/pod/b.log') ?? '', /stdout F entry mine\n$/);
  await assert.rejects(
    node.create(podSandboxId, {
      image: { image: 'localhost/empty:1' },
      command: [],
      metadata: { name: 'c' },
    }),
    says('UNKNOWN', /no command specified/),
  );
});

test('stopping a container sends the signal, waits for the timeout, and kills it', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod("trap '' TERM; while true; do sleep 1; done");
  const beforeMs = node.clock.monotonicMs();
  await node.stop(containerId, 10n);
  const tookMs = node.clock.monotonicMs() - beforeMs;
  assert.ok(tookMs >= 10_000 && tookMs < 10_100, `${tookMs} ms`);
  assert.equal((await node.status(containerId)).exitCode, 137);
});

test('the first process of a PID namespace ignores SIGTERM by default', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox();
  const linux = { securityContext: { namespaceOptions: { pid: 'CONTAINER' as const } } };
  const own = await node.start(await node.create(podSandboxId, { linux }));
  const shared = await node.start(await node.create(podSandboxId, { metadata: { name: 'shared' } }));
  await node.stop(own, 3n);
  await node.stop(shared, 3n);
  assert.equal((await node.status(own)).exitCode, 137);
  assert.equal((await node.status(shared)).exitCode, 143);
});

test('a second stop with a shorter timeout kills the container sooner, without a second signal', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod("trap '' TERM; sleep 1000");
  const first = node.cri.stopContainer({ containerId, timeout: 600n }, node.options);
  await node.clock.advance(100);
  await node.stop(containerId, 1n);
  await node.done(first);
  const signals = node.runtime.trace.entries().filter(({ kind }) => kind === 'container-signalled');
  assert.deepEqual(
    signals.map((entry) => 'signal' in entry && entry.signal),
    ['TERM', 'KILL'],
  );
});

test('stopping a created or exited container changes nothing', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox();
  const created = await node.create(podSandboxId);
  await node.stop(created, 5n);
  assert.equal((await node.status(created)).state, 'CONTAINER_CREATED');
  await node.stop(created, 5n);
});

test('the stop signal of the container is used, otherwise that of its image', async () => {
  using node = new SimulatedNode({ images: [{ reference: busybox, stopSignal: 'SIGUSR1' }] });
  const podSandboxId = await node.sandbox();
  const script = "trap 'exit 1' TERM; trap 'exit 2' USR1; trap 'exit 3' QUIT; sleep 1000 & wait";
  const byImage = await node.start(await node.create(podSandboxId, { script }));
  const own = await node.create(podSandboxId, { script, metadata: { name: 'own' }, stopSignal: 'SIGQUIT' });
  await node.start(own);
  await node.stop(byImage, 9n);
  await node.stop(own, 9n);
  assert.equal((await node.status(byImage)).exitCode, 2);
  assert.equal((await node.status(own)).exitCode, 3);
});

test('removing kills a running container, deletes it, and frees its name', async () => {
  using node = new SimulatedNode();
  const { podSandboxId, containerId } = await node.pod();
  await node.done(node.cri.removeContainer({ containerId }, node.options));
  await node.done(node.cri.removeContainer({ containerId }, node.options));
  await assert.rejects(node.status(containerId), says('NOT_FOUND', /try to find container .*: not found$/));
  assert.equal(node.runtime.runningContainers().length, 0);
  await node.create(podSandboxId);
});

test('stopping a missing container is an error in 1.6 and succeeds from 2 on', async () => {
  using old = new SimulatedNode({ flavour: 'containerd-1.6' });
  using fresh = new SimulatedNode({ flavour: 'containerd-2' });
  await assert.rejects(old.stop('nope'), says('NOT_FOUND', /not found/));
  await fresh.stop('nope');
});

test('container statuses of containerd 2 contain the image ID, the user and the stop signal', async () => {
  using node = new SimulatedNode({
    flavour: 'containerd-2',
    images: [{ reference: busybox, user: '1000:2000' }],
  });
  const { containerId } = await node.pod();
  const status = await node.status(containerId);
  assert.equal(status.imageId, status.imageRef);
  assert.deepEqual(status.user?.linux, { uid: 1000n, gid: 2000n, supplementalGroups: [2000n] });
  assert.equal(status.stopSignal, 'SIGTERM');
});

test('the status contains the resources as given, and an update changes only the fields it contains', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox();
  const linux = { resources: { cpuShares: 100n, memoryLimitInBytes: 1_000_000n, oomScoreAdj: 5n } };
  const containerId = await node.start(await node.create(podSandboxId, { linux }));
  const update = { containerId, linux: { cpuShares: 200n, oomScoreAdj: 9n } };
  await node.done(node.cri.updateContainerResources(update, node.options));
  const { resources } = await node.status(containerId);
  assert.equal(resources?.linux?.cpuShares, 200n);
  assert.equal(resources?.linux?.memoryLimitInBytes, 1_000_000n);
  assert.equal(resources?.linux?.memorySwapLimitInBytes, 1_000_000n);
  assert.equal(resources?.linux?.oomScoreAdj, 5n);
});

test('the log and the termination message are written to the requested paths', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox();
  const containerId = await node.create(podSandboxId, {
    script: 'echo out; echo err >&2; printf part; echo why > /dev/termination-log; exit 1',
    mounts: [{ containerPath: '/dev/termination-log', hostPath: '/pods/1/message' }],
  });
  await node.exited(await node.start(containerId));
  const lines = (node.files.read('/logs/pod/main.log') ?? '').split('\n');
  assert.deepEqual(
    lines.map((line) => line.replace(/^\S+ /, '')),
    ['stdout F out', 'stderr F err', 'stdout P part', ''],
  );
  assert.match(lines[0] ?? '', /^2026-01-01T00:00:00\.\d+Z /);
  assert.equal(node.files.read('/pods/1/message'), 'why\n');
});

test('a renamed log is written until it is reopened', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod('while true; do echo tick; sleep 1; done');
  await node.clock.advance(2_500);
  node.files.rename('/logs/pod/main.log', '/logs/pod/old.log');
  await node.clock.advance(2_000);
  assert.equal(node.files.read('/logs/pod/main.log'), undefined);
  await node.done(node.cri.reopenContainerLog({ containerId }, node.options));
  await node.clock.advance(2_000);
  assert.ok((node.files.read('/logs/pod/main.log') ?? '').split('\n').length >= 2);
  assert.ok((node.files.read('/logs/pod/old.log') ?? '').split('\n').length >= 5);
});

test('a container killed for lack of memory is reported as OOMKilled, first by its event', async () => {
  using node = new SimulatedNode({ script: () => ({ oomAtMs: 1_000 }) });
  const { containerId } = await node.pod();
  const ended = await node.exited(containerId);
  assert.deepEqual([ended.exitCode, ended.reason], [137, 'OOMKilled']);
});

test('changing a response does not change the state of the runtime', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod();
  const status = await node.status(containerId);
  (status.labels as Record<string, string>)['new'] = 'label';
  (status as { exitCode: number }).exitCode = 99;
  const again = await node.status(containerId);
  assert.deepEqual([again.labels, again.exitCode], [{}, 0]);
});
