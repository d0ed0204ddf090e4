import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig, refusedWith, toldIn } from '../../../test/fakes/local-api-rig.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import { serverResources } from './resource-table.ts';

const { configMaps, pods, serviceAccounts } = apiResources;
const at = (seconds: number) =>
  new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString().replace('.000', '');

/** The deletion timestamp and grace period of a pod; undefined if it is removed. */
async function deletedPod(harness: LocalApiRig, body?: JsonObject) {
  await harness.ask('delete', pods, { name: 'a', ...(body && { body }) });
  const pod = harness.store.get(pods, 'default', 'a');
  return pod && [pod.metadata.deletionTimestamp, pod.metadata.deletionGracePeriodSeconds];
}

test('removes an object without finalizers immediately and returns a Status', async () => {
  using harness = new LocalApiRig();
  const { metadata } = await harness.configMap('a');
  const watch = harness.watch(configMaps);
  await harness.clock.advance(1);
  const response = await harness.ask('delete', configMaps, { name: 'a' });
  assert.deepEqual(response, {
    kind: 'status',
    code: 200,
    status: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: metadata.uid },
    },
  });
  await harness.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'DELETED a']);
  const last = watch.lines[1]?.object['metadata'] as JsonObject;
  assert.equal(last['deletionTimestamp'], undefined);
  assert.equal(last['resourceVersion'], String(harness.store.version));
});

test('returns the removed object instead of a Status when a service account is deleted', async () => {
  using harness = new LocalApiRig();
  await harness.ask('create', serviceAccounts, { body: { metadata: { name: 's' } } });
  const gone = await harness.object('delete', serviceAccounts, { name: 's' });
  assert.equal(gone.metadata.resourceVersion, String(harness.store.version));
});

test('keeps an object until its last finalizer is removed and rejects new finalizers', async () => {
  using harness = new LocalApiRig();
  await harness.configMap('a', { metadata: { finalizers: ['example.com/x', 'example.com/y'] } });
  const marked = await harness.object('delete', configMaps, {
    name: 'a',
    body: { propagationPolicy: 'Foreground' },
  });
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = marked.metadata;
  assert.deepEqual([deletionTimestamp, deletionGracePeriodSeconds], [at(0), 0]);
  assert.deepEqual(finalizers, ['example.com/x', 'example.com/y']);
  const { version } = harness.store;
  await harness.ask('delete', configMaps, { name: 'a' });
  assert.equal(harness.store.version, version);
  const hold = (names: readonly string[]) =>
    harness.ask('patch', configMaps, {
      name: 'a',
      patch: 'merge',
      body: { metadata: { finalizers: names } },
    });
  await refusedWith(
    hold(['example.com/x', 'example.com/z']),
    422,
    'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/z"}',
  );
  await hold(['example.com/y']);
  const watch = harness.watch(configMaps);
  await harness.clock.advance(1);
  await hold([]);
  await harness.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'DELETED a']);
  assert.equal(harness.store.get(configMaps, 'default', 'a'), undefined);
});

test('rejects a deletionTimestamp set by a client', async () => {
  using harness = new LocalApiRig();
  await harness.configMap('a');
  const body = { metadata: { deletionTimestamp: at(0) } };
  await refusedWith(
    harness.ask('patch', configMaps, { name: 'a', patch: 'merge', body }),
    422,
    `ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "${at(0)}": field is immutable`,
  );
});

test('lets a strategy change an object at the start of its deletion and block its removal', async () => {
  using harness = new LocalApiRig({
    rules: {
      namespaces: {
        blocksDeletion: ({ spec }) => ((spec?.['finalizers'] ?? []) as readonly string[]).length > 0,
        beginDeletion: (object) => ({ ...object, status: { phase: 'Terminating' } }),
      },
    },
  });
  const { namespaces } = serverResources;
  const body = { metadata: { name: 'x' }, spec: { finalizers: ['kubernetes'] } };
  await harness.ask('create', namespaces, { body });
  const { status, metadata } = await harness.object('delete', namespaces, { name: 'x' });
  assert.deepEqual([status, metadata.deletionTimestamp], [{ phase: 'Terminating' }, at(0)]);
  await harness.ask('update', namespaces, {
    name: 'x',
    subresource: 'finalize',
    body: { metadata: { name: 'x' }, spec: { finalizers: [] } },
  });
  assert.equal(harness.store.get(namespaces, undefined, 'x'), undefined);
});

test('responds with a conflict to failed preconditions', async () => {
  using harness = new LocalApiRig();
  const { metadata } = await harness.configMap('a');
  const remove = (preconditions: JsonObject) =>
    harness.ask('delete', configMaps, { name: 'a', body: { preconditions } });
  const status = await refusedWith(
    remove({ uid: 'x' }),
    409,
    `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
  );
  assert.deepEqual(status.details, { name: 'a', kind: 'ConfigMap' });
  await refusedWith(remove({ resourceVersion: '1' }), 409);
  await refusedWith(harness.ask('delete', configMaps, { name: 'a', body: { propagationPolicy: 'x' } }), 422);
  await refusedWith(harness.ask('delete', configMaps, { name: 'a', body: { gracePeriodSeconds: 'x' } }), 400);
  await remove({ uid: metadata.uid, resourceVersion: metadata.resourceVersion });
  await refusedWith(harness.ask('delete', configMaps, { name: 'a' }), 404, 'configmaps "a" not found');
});

test('sets the grace period of a bound pod from its spec or the delete options', async () => {
  for (const [body, grace] of [
    [undefined, 30],
    [{ gracePeriodSeconds: 7 }, 7],
    [{ gracePeriodSeconds: -3 }, 1],
  ] as const) {
    using harness = new LocalApiRig();
    await harness.pod('a');
    assert.deepEqual(await deletedPod(harness, body), [at(grace), grace]);
    assert.equal(harness.store.get(pods, 'default', 'a')?.metadata.generation, 2);
  }
});

test('reads delete options from the query', async () => {
  using harness = new LocalApiRig();
  await harness.pod('a');
  const query = { gracePeriodSeconds: '9', propagationPolicy: 'Background' };
  const { metadata } = await harness.object('delete', pods, { name: 'a', query });
  assert.equal(metadata.deletionGracePeriodSeconds, 9);
});

test('only shortens the grace period of a terminating pod, never into the past', async () => {
  using harness = new LocalApiRig();
  await harness.pod('a');
  await deletedPod(harness);
  await harness.clock.advance(10_000);
  const { version } = harness.store;
  assert.deepEqual(await deletedPod(harness), [at(30), 30]);
  assert.deepEqual(await deletedPod(harness, { gracePeriodSeconds: 40 }), [at(30), 30]);
  assert.equal(harness.store.version, version);
  assert.deepEqual(await deletedPod(harness, { gracePeriodSeconds: 20 }), [at(20), 20]);
  assert.deepEqual(await deletedPod(harness, { gracePeriodSeconds: 5 }), [at(10), 1]);
  assert.equal(harness.store.get(pods, 'default', 'a')?.metadata.generation, 2);
});

test('stores the terminating pod before it removes it', async () => {
  using harness = new LocalApiRig();
  const { metadata } = await harness.pod('a');
  await deletedPod(harness);
  const watch = harness.watch(pods);
  await harness.clock.advance(1);
  const body = { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } };
  assert.equal(await deletedPod(harness, body), undefined);
  await harness.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'MODIFIED a', 'DELETED a']);
  const [, marked, gone] = watch.lines.map(({ object }) => object['metadata'] as JsonObject);
  assert.equal(marked?.['deletionGracePeriodSeconds'], 0);
  assert.equal(gone?.['deletionGracePeriodSeconds'], 0);
  assert.equal(Number(gone?.['resourceVersion']), Number(marked?.['resourceVersion']) + 1);
});

test('removes unscheduled and completed pods without grace period and keeps those with finalizers', async () => {
  using harness = new LocalApiRig();
  await harness.pod('a', { spec: { nodeName: '' } });
  assert.equal(await deletedPod(harness), undefined);
  await harness.pod('a');
  const status = { status: { phase: 'Succeeded' } };
  await harness.ask('patch', pods, { name: 'a', subresource: 'status', patch: 'merge', body: status });
  assert.equal(await deletedPod(harness), undefined);
  await harness.pod('a', { metadata: { finalizers: ['example.com/x'] } });
  assert.deepEqual(await deletedPod(harness, { gracePeriodSeconds: 0 }), [at(0), 0]);
  const { version } = harness.store;
  assert.deepEqual(await deletedPod(harness, { gracePeriodSeconds: 0 }), [at(0), 0]);
  assert.equal(harness.store.version, version);
  await harness.ask('patch', pods, { name: 'a', patch: 'merge', body: { metadata: { finalizers: null } } });
  assert.equal(harness.store.get(pods, 'default', 'a'), undefined);
});

test('deletes the objects of a collection that match a selector, and keeps a matching object with a finalizer as terminating', async () => {
  using harness = new LocalApiRig();
  await harness.configMap('a', { metadata: { labels: { x: 'y' } } });
  await harness.configMap('b', { metadata: { labels: { x: 'y' }, finalizers: ['example.com/x'] } });
  await harness.configMap('c');
  const response = await harness.ask('deletecollection', configMaps, { query: { labelSelector: 'x=y' } });
  assert.equal(response.kind === 'list' && response.list.items.length, 2);
  assert.deepEqual(await harness.names(configMaps), ['b', 'c']);
  assert.ok((await harness.object('get', configMaps, { name: 'b' })).metadata.deletionTimestamp);
});
