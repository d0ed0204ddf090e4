import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind } from '../../src/lib/index.ts';
import { exited, Pods, signal, status } from './pods.ts';
import type { Part } from './suite.ts';

export const containerContract: Part = (get) => {
  test('a container reports its state as created, running and exited, each with its time', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-life');
    const pod = await pods.sandbox();
    const containerId = await pod.create({ script: 'sleep 0.2' });
    const created = await status(backend, containerId);
    assert.equal(created.state, 'CONTAINER_CREATED');
    assert.ok(created.createdAt > 0n);
    assert.equal(created.startedAt, 0n);
    assert.equal(created.finishedAt, 0n);

    await backend.cri.startContainer({ containerId }, signal);
    const ended = await exited(backend, containerId);
    assert.equal(ended.exitCode, 0);
    assert.equal(ended.reason, 'Completed');
    assert.ok(created.createdAt <= ended.startedAt && ended.startedAt < ended.finishedAt);
    assert.ok(ended.finishedAt - ended.startedAt >= 200_000_000n, 'it ran for as long as it was told to');
  });

  test('a running container reports its state and keeps its configuration', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-running');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000', name: 'web', attempt: 3 });
    const observed = await status(backend, containerId);
    assert.equal(observed.state, 'CONTAINER_RUNNING');
    assert.deepEqual(observed.metadata, { name: 'web', attempt: 3 });
    assert.equal(observed.labels['io.kubernetes.container.name'], 'web');
    assert.deepEqual(observed.annotations, { hash: 'abc123' });
    assert.equal(observed.image?.image, backend.image);
    assert.notEqual(observed.imageRef, '');
    assert.equal(observed.logPath, pod.logPath('web', 3));
    assert.equal(observed.finishedAt, 0n);
    assert.equal(observed.exitCode, 0);
  });

  for (const code of [1, 3, 127, 255]) {
    test(`exit code ${code} is reported with the reason Error`, async () => {
      const backend = get();
      await using pods = new Pods(backend, `container-exit-${code}`);
      const containerId = await (await pods.sandbox()).run({ script: `exit ${code}` });
      const ended = await exited(backend, containerId);
      assert.equal(ended.exitCode, code);
      assert.equal(ended.reason, 'Error');
    });
  }

  test('a container cannot be started twice', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-start-twice');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000' });
    await assert.rejects(backend.cri.startContainer({ containerId }, signal), /CONTAINER_RUNNING/);
    assert.equal((await status(backend, containerId)).state, 'CONTAINER_RUNNING');
  });

  test('an exited container cannot be started again', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-start-exited');
    const containerId = await (await pods.sandbox()).run({ script: 'exit 0' });
    await exited(backend, containerId);
    await assert.rejects(backend.cri.startContainer({ containerId }, signal), /CONTAINER_EXITED/);
  });

  test('a missing command fails the start and leaves an exited container with the reason', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-no-command');
    const pod = await pods.sandbox();
    const containerId = await pod.create({ script: '', command: ['/no/such/program'] });
    await assert.rejects(backend.cri.startContainer({ containerId }, signal), /no such file or directory/);
    const observed = await status(backend, containerId);
    assert.equal(observed.state, 'CONTAINER_EXITED');
    assert.equal(observed.exitCode, 128);
    assert.equal(observed.reason, 'StartError');
    assert.match(observed.message, /no such file or directory/);
  });

  test('creation of a container with a missing image or sandbox returns not found', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-no-image');
    const pod = await pods.sandbox();
    await assert.rejects(pod.create({ script: '', image: 'localhost/no/such:image' }), (error) =>
      isKind(error, 'NotFound'),
    );
    const { config } = pod;
    const orphan = {
      podSandboxId: 'f'.repeat(64),
      sandboxConfig: config,
      config: { metadata: { name: 'x' } },
    };
    await assert.rejects(backend.cri.createContainer(orphan, signal), /not found/);
  });

  test('a second container with the same name and attempt in a sandbox is rejected', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-name');
    const pod = await pods.sandbox();
    await pod.create({ script: 'sleep 1000' });
    await assert.rejects(pod.create({ script: 'sleep 1000' }), /is reserved for/);
    await pod.create({ script: 'sleep 1000', attempt: 1 });
  });

  test('stop sends SIGTERM first, so that a container that handles it exits by itself', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-term');
    const pod = await pods.sandbox();
    const containerId = await pod.run({
      script: "trap 'exit 7' TERM; echo ready; while true; do sleep 0.1; done",
    });
    await backend.until(
      'the handler to be set',
      async () => (await backend.readLog(pod.logPath())).match(/ready/) ?? undefined,
    );
    await backend.cri.stopContainer({ containerId, timeout: 30n }, signal);
    const ended = await status(backend, containerId);
    assert.equal(ended.state, 'CONTAINER_EXITED');
    assert.equal(ended.exitCode, 7);
  });

  test('stop kills a container that ignores SIGTERM after the timeout', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-ignore');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: "trap '' TERM; echo ready; while true; do sleep 0.1; done" });
    await backend.until(
      'the handler to be set',
      async () => (await backend.readLog(pod.logPath())).match(/ready/) ?? undefined,
    );
    const before = backend.nowNs();
    await backend.cri.stopContainer({ containerId, timeout: 1n }, signal);
    assert.ok(backend.nowNs() - before >= 1_000_000_000n, 'it was given its second');
    const ended = await status(backend, containerId);
    assert.equal(ended.exitCode, 137);
    assert.equal(ended.reason, 'Error');
  });

  test('stop with timeout zero kills the container immediately', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-kill');
    const containerId = await (await pods.sandbox()).run({
      script: "trap 'exit 0' TERM; while true; do sleep 0.1; done",
    });
    await backend.cri.stopContainer({ containerId, timeout: 0n }, signal);
    assert.equal((await status(backend, containerId)).exitCode, 137);
  });

  test('stop may be repeated, and leaves an exited container unchanged', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-stop-twice');
    const containerId = await (await pods.sandbox()).run({ script: 'exit 4' });
    const ended = await exited(backend, containerId);
    await backend.cri.stopContainer({ containerId, timeout: 1n }, signal);
    await backend.cri.stopContainer({ containerId, timeout: 1n }, signal);
    assert.deepEqual(await status(backend, containerId), ended);
  });

  test('a second stop with a shorter timeout shortens the first', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-shorten');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: "trap '' TERM; echo ready; while true; do sleep 0.1; done" });
    await backend.until(
      'the handler to be set',
      async () => (await backend.readLog(pod.logPath())).match(/ready/) ?? undefined,
    );
    const first = backend.cri.stopContainer({ containerId, timeout: 600n }, signal);
    await backend.cri.stopContainer({ containerId, timeout: 0n }, signal);
    await first;
    assert.equal((await status(backend, containerId)).exitCode, 137);
  });

  test('remove kills a running container, and may be repeated', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-remove');
    const containerId = await (await pods.sandbox()).run({ script: 'sleep 1000' });
    await backend.cri.removeContainer({ containerId }, signal);
    await backend.cri.removeContainer({ containerId }, signal);
    await assert.rejects(status(backend, containerId), (error) => isKind(error, 'NotFound'));
  });

  test('the name and attempt of a removed container may be used again', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-again');
    const pod = await pods.sandbox();
    const containerId = await pod.create({ script: 'exit 0' });
    await backend.cri.removeContainer({ containerId }, signal);
    assert.notEqual(await pod.create({ script: 'exit 0' }), containerId);
  });

  test('stop of a missing container returns not found in containerd 1.6, and succeeds from 1.7 on', async () => {
    const { cri, flavour } = get();
    const stop = cri.stopContainer({ containerId: 'f'.repeat(64), timeout: 1n }, signal);
    if (flavour === 'containerd-1.6') await assert.rejects(stop, (error) => isKind(error, 'NotFound'));
    else await stop;
  });

  test('a container that exceeds its memory limit is killed with the reason OOMKilled', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-oom');
    const containerId = await (await pods.sandbox()).run({
      script: '',
      command: ['tail', '/dev/zero'],
      memoryLimit: 16n << 20n,
    });
    const ended = await exited(backend, containerId);
    assert.equal(ended.exitCode, 137);
    assert.equal(ended.reason, 'OOMKilled');
  });

  test('a container ID may be shortened as long as it is unique', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'container-prefix');
    const containerId = await (await pods.sandbox()).create({ script: 'exit 0' });
    assert.equal((await status(backend, containerId.slice(0, 13))).id, containerId);
  });
};
