import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind, KubelingError } from '../../src/lib/index.ts';
import { exited, Pods, signal } from './pods.ts';
import type { Part } from './suite.ts';

export const execContract: Part = (get) => {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

  test('exec returns the separate output streams and the exit code of a command', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'exec-output');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000' });
    const cmd = ['sh', '-c', 'echo out; echo err >&2; exit 5'];
    const response = await backend.cri.execSync({ containerId, cmd, timeout: 30n }, signal);
    assert.equal(text(response.stdout), 'out\n');
    assert.equal(text(response.stderr), 'err\n');
    assert.equal(response.exitCode, 5);
  });

  test('a command runs with the environment of its container', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'exec-env');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000' });
    const cmd = ['sh', '-c', 'echo $GREETING'];
    const response = await backend.cri.execSync({ containerId, cmd, timeout: 30n }, signal);
    assert.equal(text(response.stdout), 'hello\n');
  });

  test('a command that takes too long returns a timeout, and the container keeps running', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'exec-timeout');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000' });
    await assert.rejects(
      backend.cri.execSync({ containerId, cmd: ['sleep', '1000'], timeout: 1n }, signal),
      (error) => error instanceof KubelingError && error.code === 'CRI_EXEC_TIMEOUT',
    );
    const { status } = await backend.cri.containerStatus({ containerId }, signal);
    assert.equal(status?.state, 'CONTAINER_RUNNING');
  });

  test('execution of a missing command returns an error with its name', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'exec-missing');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000' });
    await assert.rejects(
      backend.cri.execSync({ containerId, cmd: ['/no/such/program'], timeout: 30n }, signal),
      /no such file or directory/,
    );
  });

  test('commands run only in running containers', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'exec-exited');
    const containerId = await (await pods.sandbox()).run({ script: 'exit 0' });
    await exited(backend, containerId);
    await assert.rejects(
      backend.cri.execSync({ containerId, cmd: ['true'], timeout: 30n }, signal),
      /CONTAINER_EXITED/,
    );
    await assert.rejects(
      backend.cri.execSync({ containerId: 'f'.repeat(64), cmd: ['true'], timeout: 30n }, signal),
      (error) => isKind(error, 'NotFound'),
    );
  });

  test('requests for streams return a URL', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'exec-url');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000' });
    const { cri } = backend;
    for (const { url } of [
      await cri.exec({ containerId, cmd: ['sh'], stdin: true, stdout: true, stderr: true }, signal),
      await cri.attach({ containerId, stdin: true, stdout: true, stderr: true }, signal),
      await cri.portForward({ podSandboxId: pod.id, port: [80] }, signal),
    ]) {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\//);
    }
  });
};

export const statsContract: Part = (get) => {
  test('a running container has CPU and memory stats', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'stats-running');
    const containerId = await (await pods.sandbox()).run({ script: 'while true; do sleep 0.1; done' });
    const found = await backend.until('the stats to show use', async () => {
      const { stats } = await backend.cri.containerStats({ containerId }, signal);
      const used =
        (stats?.cpu?.usageCoreNanoSeconds?.value ?? 0n) > 0n &&
        (stats?.memory?.workingSetBytes?.value ?? 0n) > 0n;
      return used ? stats : undefined;
    });
    assert.equal(found.attributes?.id, containerId);
    assert.equal(found.attributes?.metadata?.name, 'main');
    assert.ok((found.cpu?.timestamp ?? 0n) > 0n);
    assert.ok((found.memory?.timestamp ?? 0n) > 0n);
  });

  test('the stats list contains the running containers of a sandbox', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'stats-list');
    const pod = await pods.sandbox();
    const running = await pod.run({ script: 'sleep 1000' });
    const ended = await pod.run({ script: 'exit 0', name: 'ended' });
    await exited(backend, ended);
    const { stats } = await backend.cri.listContainerStats({ filter: { podSandboxId: pod.id } }, signal);
    assert.ok(stats.some((item) => item.attributes?.id === running));
    const cpuOfEnded = stats.find((item) => item.attributes?.id === ended)?.cpu;
    assert.equal(cpuOfEnded, undefined);
  });

  test('a missing container has no stats', async () => {
    const { cri } = get();
    await assert.rejects(cri.containerStats({ containerId: 'f'.repeat(64) }, signal), (error) =>
      isKind(error, 'NotFound'),
    );
  });

  test('the stats of a sandbox contain those of its containers', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'stats-sandbox');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000' });
    const { stats } = await backend.cri.podSandboxStats({ podSandboxId: pod.id }, signal);
    assert.equal(stats?.attributes?.id, pod.id);
    assert.deepEqual(
      stats?.linux?.containers.map((item) => item.attributes?.id),
      [containerId],
    );
  });

  test('the resources of a running container can be changed', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'stats-update');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000', memoryLimit: 64n << 20n });
    const linux = { memoryLimitInBytes: 128n << 20n, cpuShares: 512n };
    await backend.cri.updateContainerResources({ containerId, linux }, signal);
    const { status } = await backend.cri.containerStatus({ containerId }, signal);
    assert.equal(status?.state, 'CONTAINER_RUNNING');
    if (backend.flavour === 'containerd-1.6') return;
    assert.equal(status?.resources?.linux?.memoryLimitInBytes, 128n << 20n);
  });
};
