import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind } from '../../src/lib/index.ts';
import { Pods, sandboxStatus, signal, status } from './pods.ts';
import type { Part } from './suite.ts';

export const sandboxContract: Part = (get) => {
  test('a running sandbox is ready, has an IP address, and keeps its configuration', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-ready');
    const before = backend.nowNs() - 1_000_000n;
    const config = pods.config();
    const pod = await pods.sandbox(config);
    const observed = await sandboxStatus(backend, pod.id);
    assert.equal(observed.id, pod.id);
    assert.equal(observed.state, 'SANDBOX_READY');
    assert.deepEqual(observed.metadata, config.metadata);
    assert.deepEqual(observed.labels, config.labels);
    assert.deepEqual(observed.annotations, config.annotations);
    assert.match(observed.network?.ip ?? '', /^\d+\.\d+\.\d+\.\d+$/);
    assert.ok(
      observed.createdAt >= before && observed.createdAt <= backend.nowNs(),
      'createdAt lies within the call',
    );
  });

  test('two sandboxes have different IP addresses', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-two');
    const [one, two] = [await pods.sandbox(), await pods.sandbox()];
    const first = (await sandboxStatus(backend, one.id)).network?.ip;
    assert.notEqual(first, (await sandboxStatus(backend, two.id)).network?.ip);
  });

  test('a sandbox on the host network has no IP address', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-host');
    const linux = pods.linux({ network: 'NODE', pid: 'CONTAINER' });
    const pod = await pods.sandbox(pods.config({ linux, hostname: '' }));
    const observed = await sandboxStatus(backend, pod.id);
    assert.equal(observed.network?.ip ?? '', '');
    assert.equal(observed.linux?.namespaces?.options?.network, 'NODE');
  });

  test('a second sandbox with the same name and attempt is rejected, and the first is unchanged', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-twice');
    const config = pods.config();
    const pod = await pods.sandbox(config);
    await assert.rejects(backend.cri.runPodSandbox({ config }, signal), /is reserved for/);
    assert.equal((await sandboxStatus(backend, pod.id)).state, 'SANDBOX_READY');
  });

  test('sandboxes with different attempts of one pod may run at the same time', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-attempt');
    const config = pods.config();
    const first = await pods.sandbox(config);
    await backend.cri.stopPodSandbox({ podSandboxId: first.id }, signal);
    const second = await pods.sandbox({ ...config, metadata: { ...config.metadata, attempt: 1 } });
    assert.notEqual(first.id, second.id);
    assert.equal((await sandboxStatus(backend, second.id)).metadata?.attempt, 1);
  });

  test('a sandbox with an unknown runtime handler is rejected and leaves nothing', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-handler');
    const config = pods.config();
    await assert.rejects(
      backend.cri.runPodSandbox({ config, runtimeHandler: 'no-such-handler' }, signal),
      /no runtime for "no-such-handler" is configured/,
    );
    const { items } = await backend.cri.listPodSandbox({}, signal);
    assert.ok(!items.some((item) => item.metadata?.name === config.metadata?.name));
  });

  test('stopping a sandbox stops its containers and releases its address, and may be repeated', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-stop');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000' });
    await backend.cri.stopPodSandbox({ podSandboxId: pod.id }, signal);
    await backend.cri.stopPodSandbox({ podSandboxId: pod.id }, signal);
    const observed = await sandboxStatus(backend, pod.id);
    assert.equal(observed.state, 'SANDBOX_NOTREADY');
    assert.equal(observed.network?.ip ?? '', '');
    const container = await status(backend, containerId);
    assert.equal(container.state, 'CONTAINER_EXITED');
    assert.equal(container.exitCode, 137);
  });

  test('creation of a container in a stopped sandbox is rejected', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-closed');
    const pod = await pods.sandbox();
    const containerId = await pod.create({ script: 'sleep 1000', name: 'early' });
    await backend.cri.stopPodSandbox({ podSandboxId: pod.id }, signal);
    await assert.rejects(backend.cri.startContainer({ containerId }, signal), /not running|not ready/i);
  });

  test('removing a sandbox removes its containers, and may be repeated', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-remove');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000' });
    await backend.cri.stopPodSandbox({ podSandboxId: pod.id }, signal);
    await backend.cri.removePodSandbox({ podSandboxId: pod.id }, signal);
    await backend.cri.removePodSandbox({ podSandboxId: pod.id }, signal);
    await assert.rejects(sandboxStatus(backend, pod.id), (error) => isKind(error, 'NotFound'));
    await assert.rejects(status(backend, containerId), (error) => isKind(error, 'NotFound'));
  });

  test('the name of a removed sandbox may be used again', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'sandbox-again');
    const config = pods.config();
    const first = await pods.sandbox(config);
    await backend.cri.stopPodSandbox({ podSandboxId: first.id }, signal);
    await backend.cri.removePodSandbox({ podSandboxId: first.id }, signal);
    assert.notEqual((await pods.sandbox(config)).id, first.id);
  });

  test('for a missing sandbox, status returns not found and remove succeeds; stop succeeds from containerd 1.7 on', async () => {
    const { cri, flavour } = get();
    const podSandboxId = 'f'.repeat(64);
    await assert.rejects(cri.podSandboxStatus({ podSandboxId }, signal), (error) =>
      isKind(error, 'NotFound'),
    );
    await cri.removePodSandbox({ podSandboxId }, signal);
    const stop = cri.stopPodSandbox({ podSandboxId }, signal);
    if (flavour === 'containerd-1.6') await assert.rejects(stop, (error) => isKind(error, 'NotFound'));
    else await stop;
  });
};
