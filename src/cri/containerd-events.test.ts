import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isKind } from '../lib/index.ts';
import { GrpcError } from '../protocols/grpc/index.ts';
import type { MessageInit } from '../protocols/protobuf/index.ts';
import { readContainerdEvents } from './containerd-events.ts';
import { ContainerEvent, Envelope, TaskEvent, TaskExit } from './gen/containerd.ts';

const { signal } = new AbortController();
const timestamp = { seconds: 1_700_000_000n, nanos: 123_456_789 };

function envelope(topic: string, value: Uint8Array, namespace = 'k8s.io'): MessageInit<Envelope> {
  return { topic, namespace, timestamp, event: { typeUrl: 'x', value } };
}

async function read(...envelopes: readonly MessageInit<Envelope>[]) {
  let filters: readonly string[] | undefined;
  const events = {
    async *subscribe(request: MessageInit<{ filters: readonly string[] }>) {
      filters = request.filters;
      for (const init of envelopes) yield Envelope.create(init);
    },
  };
  const found = await Array.fromAsync(readContainerdEvents(events, signal));
  return { found, filters };
}

test('subscribes to events of CRI tasks and containers', async () => {
  const { filters } = await read();
  assert.deepEqual(filters, ['namespace==k8s.io,topic~=^/tasks/', 'namespace==k8s.io,topic~=^/containers/']);
});

test('decodes container ID, topic and time of each event', async () => {
  const { found } = await read(
    envelope('/tasks/start', TaskEvent.encode({ containerId: 'a' })),
    envelope('/tasks/exit', TaskExit.encode({ containerId: 'b', id: 'b', exitStatus: 137 })),
    envelope('/containers/delete', ContainerEvent.encode({ id: 'c' })),
  );
  const atMs = 1_700_000_000_123;
  assert.deepEqual(found, [
    { containerId: 'a', topic: '/tasks/start', atMs },
    { containerId: 'b', topic: '/tasks/exit', atMs },
    { containerId: 'c', topic: '/containers/delete', atMs },
  ]);
});

test('ignores exec events, events of other namespaces and topics, and empty events', async () => {
  const { found } = await read(
    envelope('/tasks/exit', TaskExit.encode({ containerId: 'a', id: 'exec-1' })),
    envelope('/tasks/exec-added', TaskEvent.encode({ containerId: 'a' })),
    envelope('/tasks/exec-started', TaskEvent.encode({ containerId: 'a' })),
    envelope('/tasks/start', TaskEvent.encode({ containerId: 'a' }), 'moby'),
    envelope('/images/create', ContainerEvent.encode({ id: 'a' })),
    envelope('/tasks/start', Buffer.alloc(0)),
    { topic: '/tasks/start', namespace: 'k8s.io' },
  );
  assert.deepEqual(found, []);
});

test('skips an event that cannot be decoded', async () => {
  const { found } = await read(
    envelope('/tasks/start', Buffer.from('0a7f', 'hex')),
    envelope('/tasks/oom', TaskEvent.encode({ containerId: 'a' })),
  );
  assert.deepEqual(
    found.map(({ topic }) => topic),
    ['/tasks/oom'],
  );
});

test('a runtime without containerd events fails with CRI_UNSUPPORTED', async () => {
  const events = {
    // biome-ignore lint/correctness/useYield: it fails before the first event.
    async *subscribe(): AsyncGenerator<never> {
      throw new GrpcError('UNIMPLEMENTED', 'unknown service');
    },
  };
  await assert.rejects(Array.fromAsync(readContainerdEvents(events, signal)), (error) =>
    isKind(error, 'Unsupported'),
  );
});
