import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiResources } from '../../api/index.ts';
import type { StoredChange } from '../api/api-types.ts';
import type { StoredObject } from '../api/stored-object.ts';
import { VersionedStore } from './versioned-store.ts';

const { pods, configMaps } = apiResources;

function object(name: string, namespace = 'default', more: object = {}): StoredObject {
  const metadata = { name, namespace, uid: `uid-${name}`, resourceVersion: '', creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'Pod', metadata, ...more };
}

const names = (objects: readonly StoredObject[] | undefined) => objects?.map(({ metadata }) => metadata.name);

test('sorts objects by namespace and name', () => {
  const store = new VersionedStore({ historyLimit: 10 });
  for (const [name, namespace] of [
    ['b', 'x'],
    ['a', 'x'],
    ['c', 'w'],
    ['d', 'x-y'],
    ['e', 'x0'],
  ] as const)
    store.put(pods, object(name, namespace), 'me');
  assert.deepEqual(names(store.all(pods)), ['c', 'd', 'a', 'b', 'e']);
  assert.deepEqual(names(store.all(pods, 'x')), ['a', 'b']);
  assert.deepEqual(names(store.all(pods, 'x-y')), ['d']);
  assert.deepEqual(names(store.all(pods, 'none')), []);
  assert.deepEqual(names(store.from(pods, 'x', 'x/b').toArray()), ['b']);
  assert.deepEqual(names(store.from(pods, undefined, 'x/a').toArray()), ['a', 'b', 'e']);
  assert.deepEqual(store.all(configMaps), []);
});

test('reads objects at an earlier version that is retained', () => {
  const store = new VersionedStore({ historyLimit: 4 });
  for (const name of ['a', 'b', 'c']) store.put(pods, object(name), 'me');
  const { version } = store;
  store.remove(pods, 'default', 'b', 'me');
  store.put(pods, object('bb'), 'me');
  store.put(pods, object('a', 'default', { spec: { x: 1 } }), 'me');
  assert.deepEqual(names(store.all(pods)), ['a', 'bb', 'c']);
  assert.deepEqual(names(store.allAt(pods, version)), ['a', 'b', 'c']);
  assert.equal(store.allAt(pods, version)?.[0]?.spec, undefined);
  assert.deepEqual(names(store.fromAt(pods, 'default', 'default/b', version)?.toArray()), ['b', 'c']);
  store.put(pods, object('z'), 'me');
  store.put(pods, object('z', 'default', { spec: { x: 2 } }), 'me');
  assert.equal(store.allAt(pods, version), undefined);
  assert.equal(store.compactedUpTo(pods), version + 1);
  assert.equal(store.changesAfter(pods, version), undefined);
  assert.equal(store.changesAfter(pods, version + 1)?.length, 4);
});

test('reports a deleted object to watchers with the version of its deletion', () => {
  const store = new VersionedStore({ historyLimit: 4 });
  const told: StoredChange[] = [];
  store.subscribe((change) => told.push(change));
  const stored = store.put(pods, object('a', 'default', { spec: { x: 1 } }), 'me');
  const gone = store.remove(pods, 'default', 'a', 'me');
  assert.equal(store.remove(pods, 'default', 'a', 'me'), undefined);
  assert.deepEqual(gone?.spec, { x: 1 });
  assert.equal(Number(gone?.metadata.resourceVersion), Number(stored.metadata.resourceVersion) + 1);
  assert.deepEqual(
    told.map(({ type, version }) => [type, version]),
    [
      ['ADDED', 2],
      ['DELETED', 3],
    ],
  );
  assert.equal(told[1]?.before, stored);
});

test('delivers changes made by subscribers after the current change, in order', () => {
  const store = new VersionedStore({ historyLimit: 10 });
  const told: number[] = [];
  store.subscribe(({ object: { metadata } }) => {
    if (metadata.name === 'a') store.put(pods, object('b'), 'me');
  });
  store.subscribe(({ version }) => told.push(version));
  store.put(pods, object('a'), 'me');
  assert.deepEqual(told, [2, 3]);
});

test('drops old changes when new ones are added', () => {
  let nowMs = 0;
  const store = new VersionedStore({ historyLimit: 100, historyMs: 1_000, nowMs: () => nowMs });
  store.put(pods, object('a'), 'me');
  nowMs = 900;
  store.put(pods, object('b'), 'me');
  assert.equal(store.changesAfter(pods, 1)?.length, 2);
  nowMs = 1_500;
  store.put(pods, object('c'), 'me');
  assert.equal(store.changesAfter(pods, 1), undefined);
  assert.equal(store.changesAfter(pods, 2)?.length, 2);
});

test('restores objects and history from the persisted state', () => {
  const first = new VersionedStore({ historyLimit: 100 });
  const log: StoredChange[] = [];
  first.put(pods, object('old'), 'me');
  const { version: from } = first;
  first.subscribe((change) => log.push(change));
  first.put(pods, object('a'), 'me');
  first.put(pods, object('a', 'default', { spec: { x: 1 } }), 'me');
  first.remove(pods, 'default', 'old', 'me');
  first.put(configMaps, object('m'), 'me');
  const objects = [
    { resource: pods, object: object('a', 'default', { spec: { x: 1 } }) },
    { resource: configMaps, object: object('m') },
  ];
  // The persisted log omits the previous version of an object when an earlier change of the log
  // contains it.
  const kept = log.map((change) => (change.type === 'MODIFIED' ? { ...change, before: undefined } : change));
  const second = VersionedStore.restore({ version: 40, objects, log: kept }, { historyLimit: 100 });
  assert.equal(second.version, 40);
  assert.equal(second.lastChange, 0);
  assert.deepEqual(
    second.changesAfter(pods, from)?.map(({ type, before }) => [type, before?.metadata.name]),
    [
      ['ADDED', undefined],
      ['MODIFIED', 'a'],
      ['DELETED', 'old'],
    ],
  );
  assert.deepEqual(names(second.allAt(pods, from)), ['old']);
  assert.equal(second.changesAfter(pods, from - 1), undefined);
  assert.equal(second.put(pods, object('n'), 'me').metadata.resourceVersion, '41');
});

test('drops the restored history up to a change whose previous object cannot be found', () => {
  const change = {
    version: 7,
    type: 'MODIFIED',
    resource: pods,
    object: object('a'),
    before: undefined,
  } as const;
  const store = VersionedStore.restore({ version: 9, objects: [], log: [change] }, { historyLimit: 10 });
  assert.equal(store.changesAfter(pods, 6), undefined);
  assert.deepEqual(store.changesAfter(pods, 7), []);
  assert.equal(store.changesAfter(configMaps, 5), undefined);
  const empty = VersionedStore.restore({ version: 9, objects: [], log: [] }, { historyLimit: 10 });
  assert.equal(empty.changesAfter(pods, 8), undefined);
  assert.deepEqual(empty.changesAfter(pods, 9), []);
});

test('compacts without a new version; watchers at the current version can continue', () => {
  const store = new VersionedStore({ historyLimit: 10 });
  store.put(pods, object('a'), 'me');
  const { version } = store;
  store.put(pods, object('b'), 'me');
  store.compact();
  assert.equal(store.version, version + 1);
  assert.equal(store.changesAfter(pods, version), undefined);
  assert.deepEqual(store.changesAfter(pods, version + 1), []);
  // Tables without any change are compacted, too.
  assert.equal(store.changesAfter(configMaps, version), undefined);
  const stored = store.put(pods, object('c'), 'me');
  assert.equal(stored.metadata.resourceVersion, String(version + 2));
  assert.equal(store.changesAfter(pods, version + 1)?.length, 1);
});

test('retains fewer changes of large objects, and always the latest one', () => {
  const store = new VersionedStore({ historyLimit: 1_000, historyBytes: 10_000_000 });
  const put = (round: number, size: number) =>
    store.put(configMaps, object('a', 'n', { data: { text: `${round}`.padEnd(size) } }), 'somebody');
  const before = store.version;
  for (let round = 0; round < 30; round++) put(round, 1_000_000);
  assert.equal(store.changesAfter(configMaps, before), undefined);
  assert.equal(store.changesAfter(configMaps, store.version - 9)?.length, 9);
  assert.equal(store.changesAfter(configMaps, store.version - 10), undefined);
  put(30, 20_000_000);
  assert.equal(store.changesAfter(configMaps, store.version - 1)?.length, 1);
  assert.equal(store.compactedUpTo(configMaps), store.version - 1);
  for (let round = 0; round < 5; round++) put(round, 10);
  assert.equal(store.changesAfter(configMaps, store.version - 5)?.length, 5);
});
