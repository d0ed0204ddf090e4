import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ContainerEventResponse } from '../cri/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { RuntimeHint } from './runtime-events.ts';
import { proofContainerId, runtimeEvents } from './runtime-events.ts';

const never = new AbortController().signal;

async function all(hints: AsyncIterable<RuntimeHint>): Promise<RuntimeHint[]> {
  const found: RuntimeHint[] = [];
  for await (const hint of hints) found.push(hint);
  return found;
}

const containerd = async function* () {
  yield { containerId: 'c1', topic: '/tasks/exit', atMs: 5 };
  yield { containerId: 'c1', topic: '/tasks/delete', atMs: 6 };
  yield { containerId: proofContainerId('7'), topic: '/tasks/kubeling', atMs: 7 };
};

test('converts CRI events with their pod and state', async () => {
  const getContainerEvents = async function* () {
    yield ContainerEventResponse.create({
      containerId: 'c1',
      containerEventType: 'CONTAINER_STOPPED_EVENT',
      createdAt: 3_000_000n,
      podSandboxStatus: { metadata: { uid: 'uid-1' } },
    });
    yield ContainerEventResponse.create({ containerId: 'c2', containerEventType: 'CONTAINER_STARTED_EVENT' });
  };
  const published: string[] = [];
  const source = runtimeEvents({ getContainerEvents, containerdEvents: containerd }, async () => {
    published.push('published');
  });
  assert.deepEqual(await all(source.events(never)), [
    { containerId: 'c1', podUid: 'uid-1', what: 'stopped', atMs: 3 },
    { containerId: 'c2', podUid: undefined, what: 'started', atMs: undefined },
  ]);
  await assert.rejects(source.provoke?.(never) ?? Promise.resolve(), /CRI has no call for it/);
  assert.deepEqual(published, []);
});

test("reads containerd's own events, which can be provoked, when the runtime has no CRI events", async () => {
  // biome-ignore lint/correctness/useYield: it fails before there is anything to give.
  const getContainerEvents = async function* () {
    throw new KubelingError('CRI_UNSUPPORTED', 'unknown method');
  };
  const published: string[] = [];
  const source = runtimeEvents({ getContainerEvents, containerdEvents: containerd }, async () => {
    published.push('published');
  });
  const hints = await all(source.events(never));
  assert.deepEqual(
    hints.map(({ what }) => what),
    ['stopped', 'stopped', 'proof'],
  );
  await source.provoke?.(never);
  assert.deepEqual(published, ['published']);
});

test('does not treat a broken CRI stream as a runtime without events', async () => {
  // biome-ignore lint/correctness/useYield: it fails before there is anything to give.
  const getContainerEvents = async function* () {
    throw new KubelingError('CRI_UNAVAILABLE', 'away');
  };
  const source = runtimeEvents({ getContainerEvents, containerdEvents: containerd });
  await assert.rejects(all(source.events(never)), /away/);
});
