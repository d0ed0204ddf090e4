import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig, refusedWith, toldIn } from '../../../test/fakes/local-api-rig.ts';
import { apiResources } from '../../api/index.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { serverResources } from './resource-table.ts';

const { configMaps, leases, nodes, pods } = apiResources;

test('sets server fields of a new object', async () => {
  using harness = new LocalApiRig();
  const response = await harness.ask('create', configMaps, {
    body: {
      kind: 'ConfigMap',
      metadata: {
        name: 'a',
        uid: 'mine',
        generation: 9,
        creationTimestamp: '1999-01-01T00:00:00Z',
        deletionTimestamp: '1999-01-01T00:00:00Z',
        deletionGracePeriodSeconds: 3,
        managedFields: [{ manager: 'x' }],
        labels: {},
      },
      data: { k: 'v' },
    },
  });
  assert.equal(response.kind === 'object' && response.code, 201);
  const { metadata, ...rest } = await harness.object('get', configMaps, { name: 'a' });
  assert.deepEqual(rest, { apiVersion: 'v1', kind: 'ConfigMap', data: { k: 'v' } });
  assert.deepEqual(metadata, {
    name: 'a',
    namespace: 'default',
    uid: metadata.uid,
    resourceVersion: String(harness.store.version),
    creationTimestamp: '2026-01-01T00:00:00Z',
  });
  assert.notEqual(metadata.uid, 'mine');
});

test('generates a name from a prefix, with limited length and without collisions', async () => {
  using harness = new LocalApiRig();
  const body = { metadata: { generateName: 'x'.repeat(70) } };
  const names = new Set<string>();
  for (let i = 0; i < 20; i++)
    names.add((await harness.object('create', configMaps, { body })).metadata.name);
  assert.equal(names.size, 20);
  for (const name of names) assert.match(name, /^x{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  const status = await refusedWith(
    harness.ask('create', configMaps, { body: { metadata: {} } }),
    422,
    'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
  );
  assert.deepEqual(status.details, {
    kind: 'ConfigMap',
    causes: [
      {
        reason: 'FieldValueRequired',
        message: 'Required value: name or generateName is required',
        field: 'metadata.name',
      },
    ],
  });
});

test('rejects a create of an existing object, also of one that is being deleted', async () => {
  using harness = new LocalApiRig();
  await harness.configMap('a', { metadata: { finalizers: ['example.com/x'] } });
  const status = await refusedWith(harness.configMap('a'), 409, 'configmaps "a" already exists');
  assert.equal(status.reason, 'AlreadyExists');
  await harness.ask('delete', configMaps, { name: 'a' });
  await refusedWith(harness.configMap('a'), 409, 'object is being deleted: configmaps "a" already exists');
});

test('rejects a create if its object has a resource version or another namespace than the request path, or if the namespace is missing or terminating', async () => {
  using harness = new LocalApiRig();
  await refusedWith(
    harness.configMap('a', { metadata: { namespace: 'other' } }),
    400,
    'the namespace of the provided object does not match the namespace sent on the request',
  );
  await refusedWith(harness.configMap('a', { metadata: { resourceVersion: '1' } }), 500);
  await refusedWith(harness.configMap('a', {}, { namespace: 'none' }), 404, 'namespaces "none" not found');
  harness.namespace('going', { status: { phase: 'Terminating' } });
  const status = await refusedWith(
    harness.configMap('a', {}, { namespace: 'going' }),
    403,
    'configmaps "a" is forbidden: unable to create new content in namespace going because it is being terminated',
  );
  assert.deepEqual(status.details?.causes, [
    {
      reason: 'NamespaceTerminating',
      message: 'namespace going is being terminated',
      field: 'metadata.namespace',
    },
  ]);
});

test('rejects an update with a stale resource version', async () => {
  using harness = new LocalApiRig();
  const first = await harness.configMap('a');
  const put = (metadata: object, data: object = { k: 'v' }) =>
    harness.object('update', configMaps, { name: 'a', body: { metadata: { name: 'a', ...metadata }, data } });
  const second = await put({ resourceVersion: first.metadata.resourceVersion });
  const conflict = await refusedWith(
    put({ resourceVersion: first.metadata.resourceVersion }, { k: 'w' }),
    409,
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
  );
  assert.deepEqual([conflict.reason, conflict.details], ['Conflict', { name: 'a', kind: 'configmaps' }]);
  const third = await put({ labels: { x: 'y' }, creationTimestamp: 'never' }, { k: 'w' });
  assert.equal(third.metadata.creationTimestamp, first.metadata.creationTimestamp);
  assert.equal(third.metadata.uid, second.metadata.uid);
  const other = await refusedWith(put({ uid: 'other' }), 409);
  assert.match(other.message, /Precondition failed: UID in precondition: other, UID in object meta: /);
  await refusedWith(
    put({ name: 'b' }),
    400,
    'the name of the object (b) does not match the name on the URL (a)',
  );
  await refusedWith(put({ name: undefined }), 400);
});

test('neither increments the resource version nor notifies watchers for an unchanged object', async () => {
  using harness = new LocalApiRig();
  const before = await harness.configMap('a', { data: { k: 'v' } });
  const watch = harness.watch(configMaps);
  await harness.clock.advance(1);
  const { version } = harness.store;
  const same = await harness.object('update', configMaps, {
    name: 'a',
    body: { metadata: { name: 'a', labels: {}, annotations: {} }, data: { k: 'v' } },
  });
  const patched = await harness.object('patch', configMaps, {
    name: 'a',
    patch: 'merge',
    body: { data: { k: 'v' } },
  });
  await harness.clock.advance(1);
  assert.deepEqual([same, patched, harness.store.version], [before, before, version]);
  assert.deepEqual(toldIn(watch), ['ADDED a']);
});

test('drops fields that a strategy sets to undefined', async () => {
  const prepare = (object: StoredObject) => ({ ...object, data: undefined });
  using harness = new LocalApiRig({ rules: { configmaps: { prepare } } });
  const created = await harness.configMap('a');
  assert.equal(Object.hasOwn(created, 'data'), false);
  const patched = await harness.object('patch', configMaps, { name: 'a', patch: 'merge', body: {} });
  assert.equal(patched.metadata.resourceVersion, created.metadata.resourceVersion);
});

test('for a lease, creates a missing object on update, and rejects an update without resource version', async () => {
  using harness = new LocalApiRig();
  const body = { metadata: { name: 'l' }, spec: { holderIdentity: 'me' } };
  const created = await harness.ask('update', leases, { name: 'l', body });
  assert.equal(created.kind === 'object' && created.code, 201);
  const status = await refusedWith(
    harness.ask('update', leases, { name: 'l', body }),
    422,
    'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
  );
  assert.equal(status.details?.kind, 'leases');
  await refusedWith(harness.ask('update', configMaps, { name: 'c', body: { metadata: { name: 'c' } } }), 404);
  const claimed = { metadata: { name: 'm', uid: 'gone' } };
  await refusedWith(harness.ask('update', leases, { name: 'm', body: claimed }), 409);
});

test('does not store the object of a dry run', async () => {
  using harness = new LocalApiRig();
  await harness.configMap('a', { data: { k: 'v' } });
  const { version } = harness.store;
  const created = await harness.configMap('b', {}, { dryRun: true });
  assert.ok(created.metadata.uid);
  assert.equal(Object.hasOwn(created.metadata, 'resourceVersion'), false);
  const body = { data: { k: 'w' } };
  const patched = await harness.object('patch', configMaps, {
    name: 'a',
    patch: 'merge',
    body,
    dryRun: true,
  });
  assert.deepEqual(patched['data'], { k: 'w' });
  await harness.ask('delete', configMaps, { name: 'a', body: { dryRun: ['All'] } });
  await harness.ask('delete', configMaps, { name: 'a', dryRun: true });
  await harness.ask('deletecollection', configMaps, { dryRun: true });
  assert.deepEqual([harness.store.version, await harness.names(configMaps)], [version, ['a']]);
  await refusedWith(harness.ask('delete', configMaps, { name: 'a', body: { dryRun: ['Some'] } }), 422);
});

test('increments the generation of a pod for spec changes and deletion, not for status changes', async () => {
  using harness = new LocalApiRig();
  const generation = async (options: { readonly body: object; readonly subresource?: string }) => {
    const call = { ...options, name: 'a', patch: 'merge', body: { ...options.body } } as const;
    return (await harness.object('patch', pods, call)).metadata.generation;
  };
  assert.equal((await harness.pod('a')).metadata.generation, 1);
  assert.equal(await generation({ body: { metadata: { labels: { x: 'y' }, generation: 7 } } }), 1);
  assert.equal(await generation({ body: { spec: { activeDeadlineSeconds: 5 } } }), 2);
  const status = { body: { status: { phase: 'Running' }, spec: { x: 1 } }, subresource: 'status' };
  assert.equal(await generation(status), 2);
  const ephemeral = { spec: { ephemeralContainers: [{ name: 'e', image: 'i' }], nodeName: 'n9' } };
  assert.equal(await generation({ body: ephemeral, subresource: 'ephemeralcontainers' }), 3);
  const pod = await harness.object('get', pods, { name: 'a' });
  assert.deepEqual([pod.spec?.['nodeName'], pod.spec?.['x']], ['n1', undefined]);
  assert.equal((await harness.object('delete', pods, { name: 'a' })).metadata.generation, 4);
});

test('updates only the status through the status subresource', async () => {
  using harness = new LocalApiRig();
  const body = { metadata: { name: 'n' }, spec: { podCIDR: 'x' }, status: { phase: 'a' } };
  await harness.ask('create', nodes, { body });
  const put = (subresource?: string) =>
    harness.object('update', nodes, {
      name: 'n',
      ...(subresource === undefined ? {} : { subresource }),
      body: { metadata: { name: 'n' }, spec: { podCIDR: 'y' }, status: { phase: 'b' } },
    });
  const { spec, status } = await put('status');
  assert.deepEqual([spec, status], [{ podCIDR: 'x' }, { phase: 'b' }]);
  await harness.ask('update', nodes, { name: 'n', body: { metadata: { name: 'n' }, spec: {}, status: {} } });
  assert.deepEqual((await harness.object('get', nodes, { name: 'n', subresource: 'status' })).status, {
    phase: 'b',
  });
});

test('updates only container resources through the resize subresource', async () => {
  using harness = new LocalApiRig();
  await harness.pod('a');
  const containers = [{ name: 'c', image: 'other', resources: { requests: { cpu: '1' } } }];
  const { spec } = await harness.object('patch', pods, {
    name: 'a',
    subresource: 'resize',
    patch: 'strategic',
    body: { spec: { containers } },
  });
  assert.deepEqual(spec?.['containers'], [{ name: 'c', image: 'i', resources: { requests: { cpu: '1' } } }]);
});

test('applies the three patch types and treats uid and resourceVersion in a patch as preconditions', async () => {
  using harness = new LocalApiRig();
  const { metadata } = await harness.configMap('a', { data: { k: 'v' } });
  const patch = (kind: 'json' | 'merge' | 'strategic' | undefined, body: object | readonly unknown[]) =>
    harness.object('patch', configMaps, { name: 'a', ...(kind && { patch: kind }), body: body as never });
  assert.deepEqual((await patch('json', [{ op: 'add', path: '/data/j', value: '1' }]))['data'], {
    k: 'v',
    j: '1',
  });
  assert.deepEqual((await patch('merge', { data: { j: null } }))['data'], { k: 'v' });
  await patch('strategic', { metadata: { uid: metadata.uid, finalizers: ['example.com/a'] } });
  const { finalizers } = (await patch('strategic', { metadata: { finalizers: ['example.com/b'] } })).metadata;
  assert.deepEqual(finalizers, ['example.com/b', 'example.com/a']);
  await refusedWith(patch('merge', { metadata: { resourceVersion: '1' } }), 409);
  await refusedWith(
    patch('merge', { metadata: { uid: 'other' } }),
    422,
    'ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable',
  );
  await refusedWith(patch('merge', { metadata: { name: 'b' } }), 400);
  await refusedWith(patch('merge', { kind: 'Secret' }), 422);
  await refusedWith(patch('json', [{ op: 'test', path: '/data/k', value: 'x' }]), 422);
  await refusedWith(patch('json', [{ op: 'dance', path: '/data/k' }]), 422);
  await refusedWith(
    patch('json', Array(10_001).fill({ op: 'test', path: '/kind', value: 'ConfigMap' })),
    413,
  );
  await refusedWith(patch('strategic', { metadata: { $retainKeys: ['x'], labels: {} } }), 400);
  await refusedWith(patch(undefined, {}), 415);
  await refusedWith(harness.ask('patch', configMaps, { name: 'none', patch: 'merge', body: {} }), 404);
});

test('reports each cause of an invalid object once', async () => {
  const cause = (field: string) =>
    ({ reason: 'FieldValueRequired', field, message: 'Required value' }) as const;
  const validate = () => [cause('data.a'), cause('data.b'), cause('data.a')];
  using harness = new LocalApiRig({ rules: { configmaps: { validate } } });
  const { details } = await refusedWith(
    harness.configMap('x'),
    422,
    'ConfigMap "x" is invalid: [data.a: Required value, data.b: Required value]',
  );
  assert.deepEqual(
    [details?.name, details?.kind, details?.causes?.map(({ field }) => field)],
    ['x', 'ConfigMap', ['data.a', 'data.b']],
  );
});

test('runs the steps of a strategy in order and returns warnings', async () => {
  const requests: string[] = [];
  using harness = new LocalApiRig({
    rules: {
      configmaps: {
        prepare: (object, { verb, warn }) => {
          requests.push(`prepare ${verb}`);
          warn('careful');
          return { ...object, data: { ...(object['data'] as object), prepared: 'yes' } };
        },
        admit: (object, { verb, deletion }) => {
          requests.push(`admit ${verb}${deletion === undefined ? '' : ` ${deletion.gracePeriodSeconds}`}`);
          return object;
        },
        validate: (_, { verb }) => {
          requests.push(`validate ${verb}`);
          return [];
        },
      },
    },
  });
  assert.deepEqual((await harness.configMap('a'))['data'], { prepared: 'yes' });
  await harness.ask('patch', configMaps, { name: 'a', patch: 'merge', body: { data: { x: 'y' } } });
  await harness.ask('delete', configMaps, { name: 'a', body: { gracePeriodSeconds: 3 } });
  assert.deepEqual(requests, [
    'prepare create',
    'admit create',
    'validate create',
    'prepare update',
    'admit update',
    'validate update',
    'admit delete 3',
  ]);
  assert.deepEqual(harness.warnings, ['careful', 'careful']);
});

test('rejects verbs that a resource does not support and unknown subresources', async () => {
  using harness = new LocalApiRig();
  await refusedWith(harness.ask('deletecollection', serverResources.namespaces), 405);
  const { details } = await refusedWith(
    harness.ask('get', pods, { name: 'a', subresource: 'nonsense' }),
    404,
  );
  assert.equal(details?.name, undefined);
  await refusedWith(harness.ask('create', pods, { name: 'a', subresource: 'status', body: {} }), 405);
  await refusedWith(harness.ask('get', pods, { name: 'a', subresource: 'log' }), 404);
  await refusedWith(harness.ask('deletecollection', pods, { namespace: undefined }), 405);
  await refusedWith(harness.ask('create', pods, { namespace: undefined, body: {} }), 405);
  assert.throws(() => harness.watch(apiResources.tokenReviews));
});

test('divides the write of a large object over several event loop iterations, and starts again if the object changes in between', async () => {
  using harness = new LocalApiRig();
  const wide = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, 'v']));
  await harness.object('create', configMaps, { body: { metadata: { name: 'a' }, data: wide } });
  let isOver = false;
  const patched = harness
    .object('patch', configMaps, { name: 'a', patch: 'merge', body: { data: { large: 'yes' } } })
    .finally(() => {
      isOver = true;
    });
  for (let changes = 0; !isOver; changes++) {
    const body = { data: { [`small${changes}`]: 'yes' } };
    await harness.object('patch', configMaps, { name: 'a', patch: 'merge', body });
    assert.ok(changes < 100, 'a change in between does not delay the patch without end');
    await new Promise((resolve) => void setImmediate(resolve));
  }
  const { data } = await harness.object('get', configMaps, { name: 'a' });
  const { large, small0 } = data as Record<string, string>;
  assert.deepEqual([(await patched).kind, large, small0], ['ConfigMap', 'yes', 'yes'], 'no change is lost');
});

test('creates only one of two large objects of the same name', async () => {
  using harness = new LocalApiRig();
  const data = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, 'v']));
  const create = () => harness.ask('create', configMaps, { body: { metadata: { name: 'a' }, data } });
  const [first] = await Promise.all([create(), refusedWith(create(), 409)]);
  assert.equal(first.kind === 'object' && first.code, 201);
});
