import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedNode } from '../fakes/simulated-node.ts';
import type { ContainerScript } from './script.ts';

async function run(script: ContainerScript): Promise<SimulatedNode & { readonly containerId: string }> {
  const node = new SimulatedNode({ script: () => script, latency: () => 0 });
  const { containerId } = await node.pod();
  return Object.assign(node, { containerId });
}

test('a container with an empty script runs forever and exits on the stop signal', async () => {
  using node = await run({});
  await node.clock.advance(24 * 3_600_000);
  assert.equal((await node.status(node.containerId)).state, 'CONTAINER_RUNNING');
  await node.stop(node.containerId, 10n);
  assert.equal((await node.status(node.containerId)).exitCode, 143);
});

test('a scripted container exits after the time and with the exit code in its script', async () => {
  using node = await run({ runMs: 5_000, exitCode: 42 });
  const ended = await node.exited(node.containerId);
  assert.equal(ended.exitCode, 42);
  const ranNs = ended.finishedAt - ended.startedAt;
  assert.ok(ranNs >= 5_000_000_000n && ranNs < 5_001_000_000n);
});

test('scripted output is written at the times in the script, once or repeatedly, and before an exit at the same time', async () => {
  using node = await run({
    runMs: 3_000,
    output: [
      { atMs: 3_000, text: 'last\n' },
      { atMs: 0, text: 'first\n', stream: 'stderr' },
      { atMs: 500, everyMs: 1_000, text: 'tick\n' },
    ],
  });
  await node.exited(node.containerId);
  const lines = (node.files.read('/logs/pod/main.log') ?? '').split('\n');
  assert.deepEqual(
    lines.map((line) => line.split(' ').slice(1).join(' ')),
    ['stderr F first', 'stdout F tick', 'stdout F tick', 'stdout F tick', 'stdout F last', ''],
  );
});

test('a script can ignore SIGTERM, or delay the exit', async () => {
  using deaf = await run({ onTerm: 'ignore' });
  await deaf.stop(deaf.containerId, 7n);
  assert.equal((await deaf.status(deaf.containerId)).exitCode, 137);

  using slow = await run({ onTerm: { afterMs: 3_000, exitCode: 9 } });
  await slow.clock.advance(1_000);
  const beforeMs = slow.clock.monotonicMs();
  await slow.stop(slow.containerId, 10n);
  assert.equal((await slow.status(slow.containerId)).exitCode, 9);
  assert.equal(slow.clock.monotonicMs() - beforeMs, 3_000);
});

test('a script can make the container fail to start', async () => {
  using node = new SimulatedNode({ script: () => ({ startError: 'exec: "app": permission denied' }) });
  const id = await node.create(await node.sandbox());
  await assert.rejects(node.start(id), /unable to start container process: exec: "app": permission denied/);
  assert.equal((await node.status(id)).reason, 'StartError');
});

test('a script writes its termination message to the path Kubernetes reads', async () => {
  using node = new SimulatedNode({ script: () => ({ runMs: 10, terminationMessage: 'I am done' }) });
  const mounts = [{ containerPath: '/dev/termination-log', hostPath: '/host/message' }];
  const id = await node.create(await node.sandbox(), { mounts });
  await node.exited(await node.start(id));
  assert.equal(node.files.read('/host/message'), 'I am done');
});

test('the script of a container is selected by pod and container, then by image, then by the command line', async () => {
  using node = new SimulatedNode({
    images: [{ reference: 'localhost/busybox:1', script: { runMs: 1, exitCode: 2 } }],
    script: (pod, container) =>
      pod.metadata?.name === 'pod' && container.metadata?.name === 'chosen'
        ? { runMs: 1, exitCode: 1 }
        : undefined,
  });
  const podSandboxId = await node.sandbox();
  const code = async (name: string) => {
    const id = await node.create(podSandboxId, { metadata: { name }, script: 'exit 3' });
    return (await node.exited(await node.start(id))).exitCode;
  };
  assert.deepEqual([await code('chosen'), await code('other')], [1, 2]);
});

test('a scripted container can be killed without a call to the runtime', async () => {
  using node = await run({});
  node.runtime.crashContainer(node.containerId, 3);
  assert.equal((await node.exited(node.containerId)).exitCode, 3);
  using other = await run({});
  other.runtime.oomKillContainer(other.containerId);
  assert.equal((await other.exited(other.containerId)).reason, 'OOMKilled');
  assert.throws(() => node.runtime.crashContainer('nope'), /no simulated container nope/);
});
