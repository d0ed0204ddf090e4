import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiObject, apiResources, isApiCode, type ListQuery } from '../../../src/api/index.ts';
import type { ErrorCode } from '../../../src/lib/index.ts';
import type { StoredObject } from '../../../src/local-api/api/index.ts';
import { ApiRig, podRef, pods } from '../../fakes/api-rig.ts';
import { scriptedApiFaults } from './faults.ts';

const says = (code: ErrorCode) => (error: unknown) => isApiCode(error, code);

async function list(rig: ApiRig, query: Partial<ListQuery> = {}) {
  const { items, metadata } = await rig.done(
    rig.admin.list<StoredObject & ApiObject>({ resource: pods, ...query }, rig.signal),
  );
  return { names: items.map((item) => item.metadata.name), ...metadata };
}

test('lists are ordered by namespace and name, for one namespace or all', async () => {
  using rig = new ApiRig();
  rig.pod('b');
  rig.pod('a');
  rig.pod('z', { metadata: { namespace: 'a' } });
  assert.deepEqual((await list(rig)).names, ['z', 'a', 'b']);
  const { names, resourceVersion } = await list(rig, { namespace: 'default' });
  assert.deepEqual(names, ['a', 'b']);
  assert.equal(resourceVersion, rig.api.version);
});

test('field selectors filter lists', async () => {
  using rig = new ApiRig();
  rig.pod('a', { status: { phase: 'Running' } });
  rig.pod('b', { spec: { nodeName: undefined } });
  rig.pod('c', { metadata: { namespace: 'x' }, spec: { nodeName: 'n2' } });
  const select = async (fieldSelector: string) => (await list(rig, { fieldSelector })).names;
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
    rig.api.put(apiResources.services, { metadata: { name }, spec: { clusterIP } });
  const services = await list(rig, {
    resource: apiResources.services,
    fieldSelector: 'spec.clusterIP!=None',
  });
  assert.deepEqual(services.names, ['t']);
});

test('label selectors filter lists', async () => {
  using rig = new ApiRig();
  rig.pod('a', { metadata: { labels: { app: 'web', tier: 'x' } } });
  rig.pod('b', { metadata: { labels: { app: 'db' } } });
  rig.pod('c');
  const select = async (labelSelector: string) => (await list(rig, { labelSelector })).names;
  assert.deepEqual(await select('app=web'), ['a']);
  assert.deepEqual(await select('app != web'), ['b', 'c']);
  assert.deepEqual(await select('app in (web, db)'), ['a', 'b']);
  assert.deepEqual(await select('app notin (web),tier'), []);
  assert.deepEqual(await select('app notin (web)'), ['b', 'c']);
  assert.deepEqual(await select('!tier'), ['b', 'c']);
  await assert.rejects(select('a b c'), says('API_INVALID'));
});

test('all pages of a list show the same version, until it expires', async () => {
  using rig = new ApiRig();
  for (const name of ['a', 'b', 'c', 'd', 'e']) rig.pod(name);
  const first = await list(rig, { limit: 2 });
  assert.deepEqual(first.names, ['a', 'b']);
  rig.api.deletePod('default', 'c', 0);
  rig.pod('bb');
  const second = await list(rig, { limit: 2, continue: first.continue });
  assert.deepEqual([second.names, second.resourceVersion], [['c', 'd'], first.resourceVersion]);
  const third = await list(rig, { limit: 2, continue: second.continue });
  assert.deepEqual([third.names, third.continue], [['e'], undefined]);
  rig.api.compact();
  await assert.rejects(list(rig, { limit: 2, continue: first.continue }), says('API_GONE'));
  await assert.rejects(list(rig, { continue: 'nonsense' }), says('API_INVALID'));
});

test('a version from the future is rejected as by a real server', async () => {
  using rig = new ApiRig();
  await assert.rejects(list(rig, { resourceVersion: '999' }), says('API_FAILED'));
  await assert.rejects(list(rig, { resourceVersion: 'x' }), says('API_INVALID'));
});

test('a stale server returns old state to lists that accept cached data', async () => {
  const faults = scriptedApiFaults({
    calls: [{ verb: '*', target: 'pods', fault: { kind: 'stale', versions: 1 } }],
  });
  using rig = new ApiRig({ faults });
  rig.pod('a');
  rig.pod('b');
  assert.deepEqual((await list(rig)).names, ['a', 'b']);
  assert.deepEqual((await list(rig, { resourceVersion: '0' })).names, ['a']);
  await assert.rejects(
    rig.done(rig.admin.get(podRef('b'), { resourceVersion: '0' }, rig.signal)),
    says('API_NOT_FOUND'),
  );
  await rig.done(rig.admin.get(podRef('b'), {}, rig.signal));
});
