import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerFilter, PodSandboxFilter } from '../../src/cri/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import { exited, Pods, signal } from './pods.ts';
import type { Part } from './suite.ts';

export const listingContract: Part = (get) => {
  const containers = async (filter: MessageInit<ContainerFilter>) => {
    const response = await get().cri.listContainers({ filter }, signal);
    return response.containers.map((container) => container.id).sort();
  };
  const sandboxes = async (filter: MessageInit<PodSandboxFilter>) => {
    const response = await get().cri.listPodSandbox({ filter }, signal);
    return response.items.map((item) => item.id).sort();
  };

  test('containers are filtered by ID, state, sandbox and labels, all of which must match', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'listing-containers');
    const [one, two] = [await pods.sandbox(), await pods.sandbox()];
    const labels = { listing: 'containers' };
    const created = await one.create({ script: 'sleep 1000', name: 'created', labels });
    const running = await one.run({
      script: 'sleep 1000',
      name: 'running',
      labels: { ...labels, tier: 'web' },
    });
    const ended = await two.run({ script: 'exit 0', name: 'ended', labels });
    await exited(backend, ended);

    const labelSelector = labels;
    assert.deepEqual(await containers({ labelSelector }), [created, running, ended].sort());
    assert.deepEqual(await containers({ labelSelector: { ...labels, tier: 'web' } }), [running]);
    assert.deepEqual(await containers({ labelSelector: { tier: 'none' } }), []);
    assert.deepEqual(await containers({ id: created }), [created]);
    assert.deepEqual(await containers({ id: 'f'.repeat(64) }), []);
    assert.deepEqual(await containers({ podSandboxId: one.id }), [created, running].sort());
    assert.deepEqual(await containers({ labelSelector, state: { state: 'CONTAINER_CREATED' } }), [created]);
    assert.deepEqual(await containers({ labelSelector, state: { state: 'CONTAINER_RUNNING' } }), [running]);
    assert.deepEqual(await containers({ labelSelector, state: { state: 'CONTAINER_EXITED' } }), [ended]);
    assert.deepEqual(await containers({ podSandboxId: two.id, state: { state: 'CONTAINER_RUNNING' } }), []);
  });

  test('a listed container matches its status', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'listing-agree');
    const pod = await pods.sandbox();
    const containerId = await pod.run({ script: 'sleep 1000' });
    const { containers: listed } = await backend.cri.listContainers({ filter: { id: containerId } }, signal);
    const { status } = await backend.cri.containerStatus({ containerId }, signal);
    const [item] = listed;
    assert.equal(item?.podSandboxId, pod.id);
    assert.equal(item?.state, status?.state);
    assert.equal(item?.createdAt, status?.createdAt);
    assert.deepEqual(item?.metadata, status?.metadata);
    assert.deepEqual(item?.labels, status?.labels);
    assert.deepEqual(item?.annotations, status?.annotations);
    assert.notEqual(item?.imageRef, '');
  });

  test('sandboxes are filtered by ID, state and labels', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'listing-sandboxes');
    const labels = { listing: 'sandboxes' };
    const ready = await pods.sandbox(pods.config({ labels }));
    const stopped = await pods.sandbox(pods.config({ labels: { ...labels, old: 'yes' } }));
    await backend.cri.stopPodSandbox({ podSandboxId: stopped.id }, signal);

    assert.deepEqual(await sandboxes({ labelSelector: labels }), [ready.id, stopped.id].sort());
    assert.deepEqual(await sandboxes({ labelSelector: { ...labels, old: 'yes' } }), [stopped.id]);
    assert.deepEqual(await sandboxes({ id: ready.id }), [ready.id]);
    assert.deepEqual(await sandboxes({ labelSelector: labels, state: { state: 'SANDBOX_READY' } }), [
      ready.id,
    ]);
    assert.deepEqual(await sandboxes({ labelSelector: labels, state: { state: 'SANDBOX_NOTREADY' } }), [
      stopped.id,
    ]);
  });

  test('a filter for the container state with the enum value zero (CONTAINER_CREATED) is applied like any other', async () => {
    const backend = get();
    await using pods = new Pods(backend, 'listing-zero');
    const pod = await pods.sandbox();
    await pod.run({ script: 'sleep 1000' });
    assert.deepEqual(await containers({ podSandboxId: pod.id, state: { state: 'CONTAINER_CREATED' } }), []);
  });
};
