import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedNode } from '../fakes/simulated-node.ts';

test('CPU and memory usage grow as the script defines, up to the limit', async () => {
  using node = new SimulatedNode({
    script: () => ({ usage: { cpuCores: 0.5, memoryBytes: 1_000, memoryBytesPerSecond: 100 } }),
  });
  const podSandboxId = await node.sandbox();
  const linux = { resources: { memoryLimitInBytes: 1_500n } };
  const containerId = await node.start(await node.create(podSandboxId, { linux }));
  const look = async () => (await node.done(node.cri.containerStats({ containerId }, node.options))).stats;
  const first = await look();
  await node.clock.advance(2_000);
  const second = await look();
  const grown =
    Number(second?.cpu?.usageCoreNanoSeconds?.value) - Number(first?.cpu?.usageCoreNanoSeconds?.value);
  assert.ok(Math.abs(grown - 1e9) < 1e7, `${grown} ns of processor time in two seconds`);
  assert.ok(Math.abs(Number(second?.cpu?.usageNanoCores?.value) - 5e8) < 1e7);
  assert.ok(Number(second?.memory?.workingSetBytes?.value) >= 1_200);
  await node.clock.advance(60_000);
  assert.equal((await look())?.memory?.workingSetBytes?.value, 1_500n);
});

test('a container that does not run has no usage, but is listed', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod('exit 0');
  await node.exited(containerId);
  await assert.rejects(
    node.done(node.cri.containerStats({ containerId }, node.options)),
    /unexpected metrics response: \[\]/,
  );
  const { stats } = await node.done(node.cri.listContainerStats({}, node.options));
  assert.equal(stats.length, 1);
  assert.deepEqual([stats[0]?.cpu, stats[0]?.memory], [undefined, undefined]);
});

test('the usage of a pod is that of its containers plus that of the sandbox process', async () => {
  using node = new SimulatedNode({ script: () => ({ usage: { memoryBytes: 1 << 20 } }) });
  const podSandboxId = await node.sandbox();
  for (const name of ['a', 'b']) await node.start(await node.create(podSandboxId, { metadata: { name } }));
  const { stats } = await node.done(node.cri.podSandboxStats({ podSandboxId }, node.options));
  assert.ok((stats?.linux?.memory?.workingSetBytes?.value ?? 0n) > 2n << 20n);
  assert.equal(stats?.linux?.containers.length, 2);
  assert.equal(stats?.linux?.process?.processCount?.value, 2n);
  assert.equal(stats?.linux?.network?.defaultInterface?.name, 'eth0');
  const all = await node.done(node.cri.listPodSandboxStats({}, node.options));
  assert.equal(all.stats.length, 1);
  await node.done(node.cri.stopPodSandbox({ podSandboxId }, node.options));
  assert.equal((await node.done(node.cri.listPodSandboxStats({}, node.options))).stats.length, 0);
  await assert.rejects(
    node.done(node.cri.podSandboxStats({ podSandboxId }, node.options)),
    /is not in ready state/,
  );
});

test('a pod without a cgroup has no stats', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox({ ...node.podConfig(), linux: {} });
  await assert.rejects(
    node.done(node.cri.podSandboxStats({ podSandboxId }, node.options)),
    /because cgroupPath is empty$/,
  );
});

test('containerd 2 reports a CPU rate only when it has two samples to compare', async () => {
  using node = new SimulatedNode({ flavour: 'containerd-2' });
  await node.pod();
  const look = async () => (await node.done(node.cri.listContainerStats({}, node.options))).stats[0]?.cpu;
  assert.equal((await look())?.usageNanoCores, undefined);
  await node.clock.advance(1_000);
  assert.ok(((await look())?.usageNanoCores?.value ?? 0n) > 0n);
});

test('the image file system usage includes the images and the data that containers have written', async () => {
  using node = new SimulatedNode({ images: [{ reference: 'localhost/busybox:1', sizeBytes: 1_000 }] });
  await node.exited((await node.pod('echo 123456789 > /tmp/file')).containerId);
  const { imageFilesystems } = await node.done(node.images.imageFsInfo({}, node.options));
  assert.equal(imageFilesystems[0]?.usedBytes?.value, 1_010n);
});
