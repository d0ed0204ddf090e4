import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig, refusedWith, toldIn } from '../../../test/fakes/local-api-rig.ts';
import { ScriptedDurability } from '../../../test/fakes/scripted-durability.ts';
import { apiResources } from '../../api/index.ts';
import type { ResourceView } from '../api/api-types.ts';
import { successStatus } from '../api/responses.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { createCatalogue } from './catalogue.ts';
import { serverResources } from './resource-table.ts';

const { configMaps, events, pods, tokenReviews } = apiResources;

function isOver(promise: Promise<unknown>): () => boolean {
  let over = false;
  const end = () => {
    over = true;
  };
  promise.then(end, end);
  return () => over;
}

test('returns no response and sends no watch event before the change is durable', async () => {
  const durability = new ScriptedDurability();
  using harness = new LocalApiRig({ durability });
  durability.commit(harness.store.version);
  const watch = harness.watch(configMaps);
  await harness.clock.advance(1);
  const created = harness.configMap('a');
  const read = harness.ask('get', configMaps, { name: 'a' });
  const listed = harness.ask('list', configMaps);
  const again = harness.configMap('a');
  const late = harness.watch(configMaps);
  const waiting = [created, read, listed, again].map(isOver);
  await harness.clock.advance(10);
  assert.deepEqual(
    waiting.map((over) => over()),
    [false, false, false, false],
  );
  assert.deepEqual([toldIn(watch), toldIn(late)], [[], []]);
  durability.commit(harness.store.version);
  await refusedWith(again, 409);
  await Promise.all([created, read, listed]);
  await harness.clock.advance(1);
  assert.deepEqual([toldIn(watch), toldIn(late)], [['ADDED a'], ['ADDED a']]);
  assert.deepEqual(durability.appended, [harness.store.version - 1, harness.store.version]);
});

test('sends only durable changes to watchers, in order, and bookmarks only up to the last durable change', async () => {
  const durability = new ScriptedDurability();
  using harness = new LocalApiRig({ durability });
  durability.commit(harness.store.version);
  const query = { resourceVersion: String(harness.store.version), allowWatchBookmarks: 'true' };
  const watch = harness.watch(configMaps, { query });
  await harness.clock.advance(1);
  const all = ['a', 'b', 'c'].map((name) => harness.configMap(name));
  durability.commit(harness.store.version - 1);
  await harness.clock.advance(60_000);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'ADDED b', 'BOOKMARK']);
  const mark = watch.lines[2]?.object['metadata'] as { readonly resourceVersion: string };
  assert.equal(mark.resourceVersion, String(harness.store.version - 1));
  durability.commit(harness.store.version);
  await Promise.all(all);
  await harness.clock.advance(1);
  assert.equal(toldIn(watch).at(-1), 'ADDED c');
});

test('responds with 503 to a change that cannot be committed', async () => {
  const durability = new ScriptedDurability();
  using harness = new LocalApiRig({ durability });
  const created = harness.configMap('a');
  durability.break(new Error('disk full'));
  const { reason, details } = await refusedWith(created, 503, 'cannot commit the change: disk full');
  assert.deepEqual([reason, details], ['ServiceUnavailable', { retryAfterSeconds: 5 }]);
  assert.deepEqual(await harness.names(apiResources.configMaps), ['a'], 'reads are not affected');
});

test('rejects a watch that would start with a change that cannot be committed', async () => {
  const durability = new ScriptedDurability();
  using harness = new LocalApiRig({ durability });
  const created = harness.configMap('a');
  const watch = harness.api.watch(harness.call('watch', configMaps), harness.signal)[Symbol.asyncIterator]();
  const first = watch.next();
  durability.break(new Error('disk full'));
  const message = 'cannot commit the changes: disk full';
  const { details } = await refusedWith(first, 503, message);
  assert.deepEqual(details, { retryAfterSeconds: 5 });
  await refusedWith(created, 503);
  assert.equal(harness.api.watchers, 0);
});

/** Creates config maps whose changes are already committed to the durable store. */
async function withSafeMaps(count: number): Promise<{ rig: LocalApiRig; durability: ScriptedDurability }> {
  const durability = new ScriptedDurability();
  const harness = new LocalApiRig({ durability });
  const created = Array.from({ length: count }, (_, index) => harness.configMap(`m${index}`));
  durability.commit(harness.store.version);
  await Promise.all(created);
  return { rig: harness, durability };
}

function anotherMap(name: string): StoredObject {
  const metadata = { name, namespace: 'default', uid: 'another', resourceVersion: '', creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata };
}

test('deletes a collection in batches, each committed before the next', async () => {
  const { rig, durability } = await withSafeMaps(10);
  using _ = rig;
  durability.room = 3;
  const deleted = rig.ask('deletecollection', configMaps);
  const isDone = isOver(deleted);
  const left: number[] = [];
  for (let round = 0; round < 10 && !isDone(); round++) {
    await rig.clock.advance(1);
    left.push(rig.store.all(configMaps).length);
    // Another client replaces one object concurrently.
    if (round === 0) rig.store.remove(configMaps, 'default', 'm8', 'else');
    if (round === 0) rig.store.put(configMaps, anotherMap('m8'), 'else');
    durability.commit(rig.store.version);
    await rig.clock.advance(1);
  }
  assert.deepEqual(left, [7, 4, 1]);
  assert.equal((await deleted).kind, 'list');
  assert.equal(rig.store.get(configMaps, 'default', 'm8')?.metadata.uid, 'another');
});

test('stops deleting a collection when commits fail', async () => {
  const { rig, durability } = await withSafeMaps(10);
  using _ = rig;
  durability.room = 3;
  const deleted = rig.ask('deletecollection', configMaps);
  await rig.clock.advance(1);
  durability.break(new Error('disk full'));
  await refusedWith(deleted, 503);
  assert.equal(rig.store.all(configMaps).length, 7);
});

test('returns the result of a custom action', async () => {
  using harness = new LocalApiRig({
    rules: {
      pods: {
        handlers: {
          binding: async (call, environment) => {
            environment.execute({
              ...call,
              verb: 'patch',
              subresource: undefined,
              patch: 'merge',
              body: { metadata: { labels: { bound: 'yes' } } },
            });
            return successStatus();
          },
          log: () => ({ lines: 3 }),
        },
      },
    },
  });
  await harness.pod('a');
  const bound = await harness.ask('create', pods, { name: 'a', subresource: 'binding', body: {} });
  assert.deepEqual([bound.kind, bound.code], ['status', 201]);
  assert.deepEqual((await harness.object('get', pods, { name: 'a' })).metadata.labels, { bound: 'yes' });
  const log = await harness.ask('get', pods, { name: 'a', subresource: 'log' });
  assert.deepEqual(log, { kind: 'object', code: 200, object: { lines: 3 } });
  await refusedWith(harness.ask('create', pods, { name: 'a', subresource: 'eviction', body: {} }), 404);
});

test('does not store virtual resources', async () => {
  using harness = new LocalApiRig({
    rules: {
      tokenreviews: { handlers: { '': ({ body }) => ({ ...body, status: { authenticated: false } }) } },
    },
  });
  const { version } = harness.store;
  const body = { kind: 'TokenReview', spec: { token: 'x' } };
  const response = await harness.ask('create', tokenReviews, { body });
  assert.deepEqual(response, {
    kind: 'object',
    code: 201,
    object: { ...body, status: { authenticated: false } },
  });
  assert.equal(harness.store.version, version);
  await refusedWith(harness.ask('list', tokenReviews), 405);
});

const views: Record<string, ResourceView> = {
  'events.events.k8s.io': {
    of: events,
    toView: ({ message, ...same }) => ({ ...same, apiVersion: 'events.k8s.io/v1', note: message }),
    stored: ({ note, ...same }) => ({ ...same, apiVersion: 'v1', message: note }),
    validate: ({ message }) =>
      message === undefined
        ? [{ reason: 'FieldValueRequired', field: 'note', message: 'Required value' }]
        : [],
  },
};

test('serves one stored object under two resources, such as events of the core group and of events.k8s.io', async () => {
  using harness = new LocalApiRig({ views });
  const { eventsV1 } = serverResources;
  const plain = harness.watch(events);
  const newer = harness.watch(eventsV1, { query: { fieldSelector: 'reason=R' } });
  await harness.clock.advance(1);
  const body = { metadata: { name: 'e' }, note: 'hello', reason: 'R' };
  const created = await harness.object('create', eventsV1, { body });
  assert.deepEqual([created.apiVersion, created['note']], ['events.k8s.io/v1', 'hello']);
  const retained = await harness.object('get', events, { name: 'e' });
  assert.deepEqual([retained.apiVersion, retained['message'], retained['note']], ['v1', 'hello', undefined]);
  await harness.ask('patch', eventsV1, { name: 'e', patch: 'merge', body: { note: 'again' } });
  assert.equal((await harness.list(eventsV1)).items[0]?.['note'], 'again');
  await harness.clock.advance(1);
  assert.deepEqual(toldIn(plain), ['ADDED e', 'MODIFIED e']);
  assert.deepEqual(
    newer.lines.map(({ object }) => object['note']),
    ['hello', 'again'],
  );
  await refusedWith(harness.ask('create', eventsV1, { body: { metadata: { name: 'f' } } }), 422);
  await refusedWith(
    harness.ask('get', eventsV1, { name: 'none' }),
    404,
    'events.events.k8s.io "none" not found',
  );
});

test('lists every resource once; lists a resource that is a view of another one only if its view is given', () => {
  const catalogue = createCatalogue({ pods: { generation: 'none' } });
  const paths = catalogue.all.map(
    ({ resource: { group, version, plural } }) => `${group}/${version}/${plural}`,
  );
  assert.equal(new Set(paths).size, paths.length);
  for (const path of [
    '/v1/pods',
    '/v1/namespaces',
    '/v1/endpoints',
    'coordination.k8s.io/v1/leases',
    'storage.k8s.io/v1/storageclasses',
    'scheduling.k8s.io/v1/priorityclasses',
    'policy/v1/poddisruptionbudgets',
    'authorization.k8s.io/v1/selfsubjectrulesreviews',
  ])
    assert.ok(paths.includes(path), path);
  assert.equal(catalogue.find('events.k8s.io', 'v1', 'events'), undefined);
  assert.ok(createCatalogue({}, views).find('events.k8s.io', 'v1', 'events')?.view);
  assert.equal(catalogue.find('', 'v1', 'pods')?.strategy.generation, 'none');
  assert.equal(catalogue.find('', 'v1', 'pods')?.strategy.status, 'separate');
  assert.equal(catalogue.find('apps', 'v1', 'deployments'), undefined);
});

test('serves ten thousand objects to two hundred watchers without sorting or copying all of them', async () => {
  using harness = new LocalApiRig({ historyLimit: 20_000 });
  for (let i = 0; i < 10_000; i++)
    harness.api.context.execute(
      harness.call('create', configMaps, { body: { metadata: { name: `m${i}` } } }),
    );
  const query = { resourceVersion: String(harness.store.version) };
  const watches = Array.from({ length: 200 }, (_, i) =>
    harness.watch(
      configMaps,
      i % 2 === 0 ? { query } : { query: { ...query, fieldSelector: `metadata.name=m${i}` } },
    ),
  );
  await harness.clock.advance(1);
  for (let i = 0; i < 20; i++)
    await harness.ask('patch', configMaps, { name: `m${i}`, patch: 'merge', body: { data: { k: 'v' } } });
  await harness.clock.advance(1);
  assert.deepEqual(
    [watches[0]?.lines.length, watches[1]?.lines.length, watches[21]?.lines.length],
    [20, 1, 0],
  );
  let pages = 0;
  let count = 0;
  for (let next: string | undefined = ''; next !== undefined; pages++) {
    const page = await harness.list(configMaps, { query: { limit: '500', continue: next } });
    count += page.items.length;
    next = page.metadata.continue;
  }
  assert.deepEqual([pages, count], [20, 10_000]);
});
