import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig, refusedWith, toldIn } from '../../../test/fakes/local-api-rig.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import { serverResources } from './resource-table.ts';

const { configMaps, pods, serviceAccounts } = apiResources;
const at = (seconds: number) =>
  new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString().replace('.000', '');

/** The deletion timestamp and grace period of a pod; undefined if it is removed. */
async function deletedPod(rig: LocalApiRig, body?: JsonObject) {
  await rig.ask('delete', pods, { name: 'a', ...(body && { body }) });
  const pod = rig.store.get(pods, 'default', 'a');
  return pod && [pod.metadata.deletionTimestamp, pod.metadata.deletionGracePeriodSeconds];
}

test('removes an object without finalizers immediately and returns a Status', async () => {
  using rig = new LocalApiRig();
  const { metadata } = await rig.configMap('a');
  const watch = rig.watch(configMaps);
  await rig.clock.advance(1);
  const answer = await rig.ask('delete', configMaps, { name: 'a' });
  assert.deepEqual(answer, {
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
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'DELETED a']);
  const last = watch.lines[1]?.object['metadata'] as JsonObject;
  assert.equal(last['deletionTimestamp'], undefined);
  assert.equal(last['resourceVersion'], String(rig.store.version));
});

test('returns the removed object for some kinds', async () => {
  using rig = new LocalApiRig();
  await rig.ask('create', serviceAccounts, { body: { metadata: { name: 's' } } });
  const gone = await rig.object('delete', serviceAccounts, { name: 's' });
  assert.equal(gone.metadata.resourceVersion, String(rig.store.version));
});

test('keeps an object until its last finalizer is removed and rejects new finalizers', async () => {
  using rig = new LocalApiRig();
  await rig.configMap('a', { metadata: { finalizers: ['example.com/x', 'example.com/y'] } });
  const marked = await rig.object('delete', configMaps, {
    name: 'a',
    body: { propagationPolicy: 'Foreground' },
  });
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = marked.metadata;
  assert.deepEqual([deletionTimestamp, deletionGracePeriodSeconds], [at(0), 0]);
  assert.deepEqual(finalizers, ['example.com/x', 'example.com/y']);
  const { version } = rig.store;
  await rig.ask('delete', configMaps, { name: 'a' });
  assert.equal(rig.store.version, version);
  const hold = (names: readonly string[]) =>
    rig.ask('patch', configMaps, { name: 'a', patch: 'merge', body: { metadata: { finalizers: names } } });
  await refusedWith(
    hold(['example.com/x', 'example.com/z']),
    422,
    'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/z"}',
  );
  await hold(['example.com/y']);
  const watch = rig.watch(configMaps);
  await rig.clock.advance(1);
  await hold([]);
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'DELETED a']);
  assert.equal(rig.store.get(configMaps, 'default', 'a'), undefined);
});

test('rejects a deletionTimestamp set by a client', async () => {
  using rig = new LocalApiRig();
  await rig.configMap('a');
  const body = { metadata: { deletionTimestamp: at(0) } };
  await refusedWith(
    rig.ask('patch', configMaps, { name: 'a', patch: 'merge', body }),
    422,
    `ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "${at(0)}": field is immutable`,
  );
});

test('lets a strategy block the removal and change the object', async () => {
  using rig = new LocalApiRig({
    rules: {
      namespaces: {
        blocksDeletion: ({ spec }) => ((spec?.['finalizers'] ?? []) as readonly string[]).length > 0,
        beginDeletion: (object) => ({ ...object, status: { phase: 'Terminating' } }),
      },
    },
  });
  const { namespaces } = serverResources;
  const body = { metadata: { name: 'x' }, spec: { finalizers: ['kubernetes'] } };
  await rig.ask('create', namespaces, { body });
  const { status, metadata } = await rig.object('delete', namespaces, { name: 'x' });
  assert.deepEqual([status, metadata.deletionTimestamp], [{ phase: 'Terminating' }, at(0)]);
  await rig.ask('update', namespaces, {
    name: 'x',
    subresource: 'finalize',
    body: { metadata: { name: 'x' }, spec: { finalizers: [] } },
  });
  assert.equal(rig.store.get(namespaces, undefined, 'x'), undefined);
});

test('responds with a conflict to failed preconditions', async () => {
  using rig = new LocalApiRig();
  const { metadata } = await rig.configMap('a');
  const remove = (preconditions: JsonObject) =>
    rig.ask('delete', configMaps, { name: 'a', body: { preconditions } });
  const status = await refusedWith(
    remove({ uid: 'x' }),
    409,
    `Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
  );
  assert.deepEqual(status.details, { name: 'a', kind: 'ConfigMap' });
  await refusedWith(remove({ resourceVersion: '1' }), 409);
  await refusedWith(rig.ask('delete', configMaps, { name: 'a', body: { propagationPolicy: 'x' } }), 422);
  await refusedWith(rig.ask('delete', configMaps, { name: 'a', body: { gracePeriodSeconds: 'x' } }), 400);
  await remove({ uid: metadata.uid, resourceVersion: metadata.resourceVersion });
  await refusedWith(rig.ask('delete', configMaps, { name: 'a' }), 404, 'configmaps "a" not found');
});

test('sets the grace period of a bound pod from its spec or the delete options', async () => {
  for (const [body, grace] of [
    [undefined, 30],
    [{ gracePeriodSeconds: 7 }, 7],
    [{ gracePeriodSeconds: -3 }, 1],
  ] as const) {
    using rig = new LocalApiRig();
    await rig.pod('a');
    assert.deepEqual(await deletedPod(rig, body), [at(grace), grace]);
    assert.equal(rig.store.get(pods, 'default', 'a')?.metadata.generation, 2);
  }
});

test('reads delete options from the query', async () => {
  using rig = new LocalApiRig();
  await rig.pod('a');
  const query = { gracePeriodSeconds: '9', propagationPolicy: 'Background' };
  const { metadata } = await rig.object('delete', pods, { name: 'a', query });
  assert.equal(metadata.deletionGracePeriodSeconds, 9);
});

test('only shortens the grace period of a terminating pod, never into the past', async () => {
  using rig = new LocalApiRig();
  await rig.pod('a');
  await deletedPod(rig);
  await rig.clock.advance(10_000);
  const { version } = rig.store;
  assert.deepEqual(await deletedPod(rig), [at(30), 30]);
  assert.deepEqual(await deletedPod(rig, { gracePeriodSeconds: 40 }), [at(30), 30]);
  assert.equal(rig.store.version, version);
  assert.deepEqual(await deletedPod(rig, { gracePeriodSeconds: 20 }), [at(20), 20]);
  assert.deepEqual(await deletedPod(rig, { gracePeriodSeconds: 5 }), [at(10), 1]);
  assert.equal(rig.store.get(pods, 'default', 'a')?.metadata.generation, 2);
});

test('stores the terminating pod before it removes it', async () => {
  using rig = new LocalApiRig();
  const { metadata } = await rig.pod('a');
  await deletedPod(rig);
  const watch = rig.watch(pods);
  await rig.clock.advance(1);
  const body = { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } };
  assert.equal(await deletedPod(rig, body), undefined);
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'MODIFIED a', 'DELETED a']);
  const [, marked, gone] = watch.lines.map(({ object }) => object['metadata'] as JsonObject);
  assert.equal(marked?.['deletionGracePeriodSeconds'], 0);
  assert.equal(gone?.['deletionGracePeriodSeconds'], 0);
  assert.equal(Number(gone?.['resourceVersion']), Number(marked?.['resourceVersion']) + 1);
});

test('removes unscheduled and completed pods without grace period and keeps those with finalizers', async () => {
  using rig = new LocalApiRig();
  await rig.pod('a', { spec: { nodeName: '' } });
  assert.equal(await deletedPod(rig), undefined);
  await rig.pod('a');
  const status = { status: { phase: 'Succeeded' } };
  await rig.ask('patch', pods, { name: 'a', subresource: 'status', patch: 'merge', body: status });
  assert.equal(await deletedPod(rig), undefined);
  await rig.pod('a', { metadata: { finalizers: ['example.com/x'] } });
  assert.deepEqual(await deletedPod(rig, { gracePeriodSeconds: 0 }), [at(0), 0]);
  const { version } = rig.store;
  assert.deepEqual(await deletedPod(rig, { gracePeriodSeconds: 0 }), [at(0), 0]);
  assert.equal(rig.store.version, version);
  await rig.ask('patch', pods, { name: 'a', patch: 'merge', body: { metadata: { finalizers: null } } });
  assert.equal(rig.store.get(pods, 'default', 'a'), undefined);
});

test('deletes a collection by selector, each object with its own rules', async () => {
  using rig = new LocalApiRig();
  await rig.configMap('a', { metadata: { labels: { x: 'y' } } });
  await rig.configMap('b', { metadata: { labels: { x: 'y' }, finalizers: ['example.com/x'] } });
  await rig.configMap('c');
  const answer = await rig.ask('deletecollection', configMaps, { query: { labelSelector: 'x=y' } });
  assert.equal(answer.kind === 'list' && answer.list.items.length, 2);
  assert.deepEqual(await rig.names(configMaps), ['b', 'c']);
  assert.ok((await rig.object('get', configMaps, { name: 'b' })).metadata.deletionTimestamp);
});
