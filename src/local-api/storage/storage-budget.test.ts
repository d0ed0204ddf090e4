import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nodeUser } from '../../../test/fakes/api-users.ts';
import { LocalApiRig } from '../../../test/fakes/local-api-rig.ts';
import type { JsonObject } from '../../api/index.ts';
import { apiResources } from '../../api/index.ts';
import { StatusError, type StoredObject, VersionedStore } from '../api/index.ts';
import { heapStorageLimits } from './storage-budget.ts';

const { configMaps, events, leases, nodes, pods } = apiResources;
const limits = { total: 100_000, namespace: 60_000 };
const text = (bytes: number) => ({ data: { k: 'x'.repeat(bytes) } });

const createHarness = (store?: VersionedStore) =>
  new LocalApiRig({ storageLimits: limits, ...(store === undefined ? {} : { store }) });

const isFull = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof StatusError);
  assert.deepEqual([error.status.code, error.status.reason], [507, 'InsufficientStorage']);
  assert.match(error.message, pattern);
  return true;
};

/** Fills the storage up to its limit from two namespaces. */
async function fill(environment: LocalApiRig): Promise<void> {
  environment.namespace('other');
  for (const namespace of ['default', 'other'])
    await environment.configMap('large', text(48_000), { namespace });
}

const event = (name: string, bytes: number): JsonObject => ({
  metadata: { name },
  involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
  message: 'x'.repeat(bytes),
});

function storedMap(name: string, bytes: number): StoredObject {
  const metadata = { name, namespace: 'default', uid: name, resourceVersion: '2', creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...text(bytes) };
}

describe('the memory for stored objects', () => {
  it('rejects creations and updates that exceed the storage limit, and accepts them after a deletion', async () => {
    using environment = createHarness();
    await fill(environment);
    const total = isFull(/^storage is full: all objects together may take 0.1 MiB of memory; delete objects/);
    await assert.rejects(environment.configMap('more', text(5_000)), total);
    await environment.configMap('small', text(10));
    const update = (bytes: number) =>
      environment.object('update', configMaps, {
        name: 'small',
        body: { metadata: { name: 'small' }, ...text(bytes) },
      });
    await assert.rejects(update(5_000), total);
    await environment.ask('delete', configMaps, { namespace: 'other', name: 'large' });
    await update(5_000);
    await environment.configMap('more', text(5_000));
  });

  it('leaves storage for other namespaces when one namespace has used its share', async () => {
    using environment = createHarness();
    environment.namespace('other');
    await environment.configMap('large', text(59_000));
    const share = isFull(/the objects of the namespace "default" may take 0.1 MiB/);
    await assert.rejects(environment.configMap('more', text(5_000)), share);
    await environment.configMap('more', text(5_000), { namespace: 'other' });
  });

  it('accepts reads, deletions, updates that shrink an object, and the writes of the node when the storage is full', async () => {
    using environment = createHarness();
    await fill(environment);
    const user = nodeUser('n1');
    const nodeBody = (bytes: number) => ({
      metadata: { name: 'n1', annotations: { a: 'x'.repeat(bytes) } },
    });
    await environment.object('create', nodes, { user, name: 'n1', body: nodeBody(5_000) });
    const status = { ...nodeBody(5_000), status: { phase: 'x'.repeat(5_000) } };
    await environment.object('update', nodes, { user, name: 'n1', subresource: 'status', body: status });
    const lease = { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1' } };
    await environment.object('create', leases, { user, name: 'n1', body: lease });
    assert.equal((await environment.object('get', configMaps, { name: 'large' })).metadata.name, 'large');
    const finalizers = ['a.b/c'];
    const shrunk = { metadata: { name: 'large', finalizers }, ...text(47_900) };
    await environment.object('update', configMaps, { name: 'large', body: shrunk });
    const marked = await environment.object('delete', configMaps, { name: 'large' });
    assert.notEqual(marked.metadata.deletionTimestamp, undefined);
    await environment.ask('delete', configMaps, { namespace: 'other', name: 'large' });
  });

  it('deletes the oldest events when a new event, or a write of any other object, exceeds the storage limit', async () => {
    using environment = createHarness();
    for (const name of ['e1', 'e2', 'e3', 'e4']) {
      await environment.object('create', events, { body: event(name, 10_000) });
    }
    await environment.configMap('large', text(40_000));
    assert.deepEqual(await environment.names(events), []);
    await environment.object('create', events, { body: event('e5', 10_000) });
    await environment.object('create', events, { body: event('e6', 10_000) });
    assert.deepEqual(await environment.names(events), ['e6']);
  });

  it('opens a store that is larger than the limits, serves it, and rejects only writes that make it larger', async () => {
    const objects = Array.from({ length: 30 }, (_, index) => ({
      resource: configMaps,
      object: storedMap(`m${index}`, 10_000),
    }));
    const store = VersionedStore.restore({ version: 2, objects, log: [] }, { historyLimit: 100 });
    using environment = createHarness(store);
    assert.equal((await environment.names(configMaps)).length, 30);
    await assert.rejects(environment.configMap('more'), isFull(/storage is full/));
    for (let index = 0; index < 25; index++)
      await environment.ask('delete', configMaps, { name: `m${index}` });
    await environment.configMap('more');
  });

  it('lets the node report pod statuses within a reserve when the storage is full', async () => {
    using environment = createHarness();
    const body = { metadata: { name: 'p' }, spec: { nodeName: 'n1', containers: [] } };
    await environment.object('create', pods, { body });
    await fill(environment);
    const report = (bytes: number) =>
      environment.object('update', pods, {
        user: nodeUser('n1'),
        name: 'p',
        subresource: 'status',
        body: { ...body, status: { message: 'x'.repeat(bytes) } },
      });
    await report(10_000);
    await assert.rejects(report(40_000), isFull(/storage is full/));
  });

  it('limits the storage to a quarter of the heap, of which one namespace may use half', () => {
    assert.deepEqual(heapStorageLimits(4_000_000_000), { total: 1_000_000_000, namespace: 500_000_000 });
  });
});
