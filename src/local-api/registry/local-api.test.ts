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

test('returns and sends nothing before it is durable', async () => {
  const durability = new ScriptedDurability();
  using rig = new LocalApiRig({ durability });
  durability.commit(rig.store.version);
  const watch = rig.watch(configMaps);
  await rig.clock.advance(1);
  const created = rig.configMap('a');
  const read = rig.ask('get', configMaps, { name: 'a' });
  const listed = rig.ask('list', configMaps);
  const again = rig.configMap('a');
  const late = rig.watch(configMaps);
  const waiting = [created, read, listed, again].map(isOver);
  await rig.clock.advance(10);
  assert.deepEqual(
    waiting.map((over) => over()),
    [false, false, false, false],
  );
  assert.deepEqual([toldIn(watch), toldIn(late)], [[], []]);
  durability.commit(rig.store.version);
  await refusedWith(again, 409);
  await Promise.all([created, read, listed]);
  await rig.clock.advance(1);
  assert.deepEqual([toldIn(watch), toldIn(late)], [['ADDED a'], ['ADDED a']]);
  assert.deepEqual(durability.appended, [rig.store.version - 1, rig.store.version]);
});

test('sends only durable changes, in order, and bookmarks up to them', async () => {
  const durability = new ScriptedDurability();
  using rig = new LocalApiRig({ durability });
  durability.commit(rig.store.version);
  const query = { resourceVersion: String(rig.store.version), allowWatchBookmarks: 'true' };
  const watch = rig.watch(configMaps, { query });
  await rig.clock.advance(1);
  const all = ['a', 'b', 'c'].map((name) => rig.configMap(name));
  durability.commit(rig.store.version - 1);
  await rig.clock.advance(60_000);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'ADDED b', 'BOOKMARK']);
  const mark = watch.lines[2]?.object['metadata'] as { readonly resourceVersion: string };
  assert.equal(mark.resourceVersion, String(rig.store.version - 1));
  durability.commit(rig.store.version);
  await Promise.all(all);
  await rig.clock.advance(1);
  assert.equal(toldIn(watch).at(-1), 'ADDED c');
});

test('responds with 503 to a change that cannot be committed', async () => {
  const durability = new ScriptedDurability();
  using rig = new LocalApiRig({ durability });
  const created = rig.configMap('a');
  durability.break(new Error('disk full'));
  const { reason, details } = await refusedWith(created, 503, 'cannot commit the change: disk full');
  assert.deepEqual([reason, details], ['ServiceUnavailable', { retryAfterSeconds: 5 }]);
  assert.deepEqual(await rig.names(apiResources.configMaps), ['a'], 'reads are not affected');
});

test('rejects a watch that would start with a change that cannot be committed', async () => {
  const durability = new ScriptedDurability();
  using rig = new LocalApiRig({ durability });
  const created = rig.configMap('a');
  const watch = rig.api.watch(rig.call('watch', configMaps), rig.signal)[Symbol.asyncIterator]();
  const first = watch.next();
  durability.break(new Error('disk full'));
  const message = 'cannot commit the changes: disk full';
  const { details } = await refusedWith(first, 503, message);
  assert.deepEqual(details, { retryAfterSeconds: 5 });
  await refusedWith(created, 503);
  assert.equal(rig.api.watchers, 0);
});

/** Creates committed config maps. */
async function withSafeMaps(count: number): Promise<{ rig: LocalApiRig; durability: ScriptedDurability }> {
  const durability = new ScriptedDurability();
  const rig = new LocalApiRig({ durability });
  const made = Array.from({ length: count }, (_, index) => rig.configMap(`m${index}`));
  durability.commit(rig.store.version);
  await Promise.all(made);
  return { rig, durability };
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
  using rig = new LocalApiRig({
    rules: {
      pods: {
        handlers: {
          binding: async (call, world) => {
            world.execute({
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
  await rig.pod('a');
  const bound = await rig.ask('create', pods, { name: 'a', subresource: 'binding', body: {} });
  assert.deepEqual([bound.kind, bound.code], ['status', 201]);
  assert.deepEqual((await rig.object('get', pods, { name: 'a' })).metadata.labels, { bound: 'yes' });
  const log = await rig.ask('get', pods, { name: 'a', subresource: 'log' });
  assert.deepEqual(log, { kind: 'object', code: 200, object: { lines: 3 } });
  await refusedWith(rig.ask('create', pods, { name: 'a', subresource: 'eviction', body: {} }), 404);
});

test('does not store virtual resources', async () => {
  using rig = new LocalApiRig({
    rules: {
      tokenreviews: { handlers: { '': ({ body }) => ({ ...body, status: { authenticated: false } }) } },
    },
  });
  const { version } = rig.store;
  const body = { kind: 'TokenReview', spec: { token: 'x' } };
  const answer = await rig.ask('create', tokenReviews, { body });
  assert.deepEqual(answer, {
    kind: 'object',
    code: 201,
    object: { ...body, status: { authenticated: false } },
  });
  assert.equal(rig.store.version, version);
  await refusedWith(rig.ask('list', tokenReviews), 405);
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

test('serves one stored object under two resources', async () => {
  using rig = new LocalApiRig({ views });
  const { eventsV1 } = serverResources;
  const plain = rig.watch(events);
  const newer = rig.watch(eventsV1, { query: { fieldSelector: 'reason=R' } });
  await rig.clock.advance(1);
  const body = { metadata: { name: 'e' }, note: 'hello', reason: 'R' };
  const made = await rig.object('create', eventsV1, { body });
  assert.deepEqual([made.apiVersion, made['note']], ['events.k8s.io/v1', 'hello']);
  const kept = await rig.object('get', events, { name: 'e' });
  assert.deepEqual([kept.apiVersion, kept['message'], kept['note']], ['v1', 'hello', undefined]);
  await rig.ask('patch', eventsV1, { name: 'e', patch: 'merge', body: { note: 'again' } });
  assert.equal((await rig.list(eventsV1)).items[0]?.['note'], 'again');
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(plain), ['ADDED e', 'MODIFIED e']);
  assert.deepEqual(
    newer.lines.map(({ object }) => object['note']),
    ['hello', 'again'],
  );
  await refusedWith(rig.ask('create', eventsV1, { body: { metadata: { name: 'f' } } }), 422);
  await refusedWith(rig.ask('get', eventsV1, { name: 'none' }), 404, 'events.events.k8s.io "none" not found');
});

test('lists every resource once, and views only if they are given', () => {
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
  using rig = new LocalApiRig({ historyLimit: 20_000 });
  for (let i = 0; i < 10_000; i++)
    rig.api.context.execute(rig.call('create', configMaps, { body: { metadata: { name: `m${i}` } } }));
  const query = { resourceVersion: String(rig.store.version) };
  const watches = Array.from({ length: 200 }, (_, i) =>
    rig.watch(
      configMaps,
      i % 2 === 0 ? { query } : { query: { ...query, fieldSelector: `metadata.name=m${i}` } },
    ),
  );
  await rig.clock.advance(1);
  for (let i = 0; i < 20; i++)
    await rig.ask('patch', configMaps, { name: `m${i}`, patch: 'merge', body: { data: { k: 'v' } } });
  await rig.clock.advance(1);
  assert.deepEqual(
    [watches[0]?.lines.length, watches[1]?.lines.length, watches[21]?.lines.length],
    [20, 1, 0],
  );
  let pages = 0;
  let seen = 0;
  for (let next: string | undefined = ''; next !== undefined; pages++) {
    const page = await rig.list(configMaps, { query: { limit: '500', continue: next } });
    seen += page.items.length;
    next = page.metadata.continue;
  }
  assert.deepEqual([pages, seen], [20, 10_000]);
});
