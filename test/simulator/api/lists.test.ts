import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiObject, apiResources, isApiCode, type ListQuery } from '../../../src/api/index.ts';
import type { ErrorCode } from '../../../src/lib/index.ts';
import type { StoredObject } from '../../../src/local-api/api/index.ts';
import { ApiRig, podRef, pods } from '../../fakes/api-rig.ts';
import { scriptedApiFaults } from './faults.ts';

const says = (code: ErrorCode) => (error: unknown) => isApiCode(error, code);

async function list(harness: ApiRig, query: Partial<ListQuery> = {}) {
  const { items, metadata } = await harness.done(
    harness.admin.list<StoredObject & ApiObject>({ resource: pods, ...query }, harness.signal),
  );
  return { names: items.map((item) => item.metadata.name), ...metadata };
}

test('lists are ordered by namespace and name, for one namespace or all', async () => {
  using harness = new ApiRig();
  harness.pod('b');
  harness.pod('a');
  harness.pod('z', { metadata: { namespace: 'a' } });
  assert.deepEqual((await list(harness)).names, ['z', 'a', 'b']);
  const { names, resourceVersion } = await list(harness, { namespace: 'default' });
  assert.deepEqual(names, ['a', 'b']);
  assert.equal(resourceVersion, harness.api.version);
});

test('field selectors filter lists', async () => {
  using harness = new ApiRig();
  harness.pod('a', { status: { phase: 'Running' } });
  harness.pod('b', { spec: { nodeName: undefined } });
  harness.pod('c', { metadata: { namespace: 'x' }, spec: { nodeName: 'n2' } });
  const select = async (fieldSelector: string) => (await list(harness, { fieldSelector })).names;
  assert.deepEqual(await select('spec.nodeName=n1'), ['a']);
  assert.deepEqual(await select('spec.nodeName='), ['b']);
  assert.deepEqual(await select('spec.nodeName!=n1,metadata.namespace==default'), ['b']);
  assert.deepEqual(await select('metadata.name=c'), ['c']);
  assert.deepEqual(await select('status.phase!=Running'), ['b', 'c']);
  assert.deepEqual(await select('spec.hostNetwork=false,spec.restartPolicy=Always'), ['a', 'b', 'c']);
  await assert.rejects(select('spec.image=x'), says('API_INVALID'));
  await assert.rejects(select('nonsense'), says('API_INVALID'));
  for (const [name, clusterIP] of [
    ['s', 'None'],
    ['t', '10.0.0.1'],
  ])
    harness.api.put(apiResources.services, { metadata: { name }, spec: { clusterIP } });
  const services = await list(harness, {
    resource: apiResources.services,
    fieldSelector: 'spec.clusterIP!=None',
  });
  assert.deepEqual(services.names, ['t']);
});

test('label selectors filter lists', async () => {
  using harness = new ApiRig();
  harness.pod('a', { metadata: { labels: { app: 'web', tier: 'x' } } });
  harness.pod('b', { metadata: { labels: { app: 'db' } } });
  harness.pod('c');
  const select = async (labelSelector: string) => (await list(harness, { labelSelector })).names;
  assert.deepEqual(await select('app=web'), ['a']);
  assert.deepEqual(await select('app != web'), ['b', 'c']);
  assert.deepEqual(await select('app in (web, db)'), ['a', 'b']);
  assert.deepEqual(await select('app notin (web),tier'), []);
  assert.deepEqual(await select('app notin (web)'), ['b', 'c']);
  assert.deepEqual(await select('!tier'), ['b', 'c']);
  await assert.rejects(select('a b c'), says('API_INVALID'));
});

test('all pages of a list show the same version, until it expires', async () => {
  using harness = new ApiRig();
  for (const name of ['a', 'b', 'c', 'd', 'e']) harness.pod(name);
  const first = await list(harness, { limit: 2 });
  assert.deepEqual(first.names, ['a', 'b']);
  harness.api.deletePod('default', 'c', 0);
  harness.pod('bb');
  const second = await list(harness, { limit: 2, continue: first.continue });
  assert.deepEqual([second.names, second.resourceVersion], [['c', 'd'], first.resourceVersion]);
  const third = await list(harness, { limit: 2, continue: second.continue });
  assert.deepEqual([third.names, third.continue], [['e'], undefined]);
  harness.api.compact();
  await assert.rejects(list(harness, { limit: 2, continue: first.continue }), says('API_GONE'));
  await assert.rejects(list(harness, { continue: 'nonsense' }), says('API_INVALID'));
});

test('a list at a future resource version is rejected as by a real server', async () => {
  using harness = new ApiRig();
  await assert.rejects(list(harness, { resourceVersion: '999' }), says('API_FAILED'));
  await assert.rejects(list(harness, { resourceVersion: 'x' }), says('API_INVALID'));
});

test('a stale server returns old objects to lists that accept cached data', async () => {
  const faults = scriptedApiFaults({
    calls: [{ verb: '*', target: 'pods', fault: { kind: 'stale', versions: 1 } }],
  });
  using harness = new ApiRig({ faults });
  harness.pod('a');
  harness.pod('b');
  assert.deepEqual((await list(harness)).names, ['a', 'b']);
  assert.deepEqual((await list(harness, { resourceVersion: '0' })).names, ['a']);
  await assert.rejects(
    harness.done(harness.admin.get(podRef('b'), { resourceVersion: '0' }, harness.signal)),
    says('API_NOT_FOUND'),
  );
  await harness.done(harness.admin.get(podRef('b'), {}, harness.signal));
});
