import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig, type RigWatch, refusedWith, toldIn } from '../../../test/fakes/local-api-rig.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import { StatusError } from '../api/api-types.ts';
import type { ServedWatchEvent } from '../api/responses.ts';

const { configMaps, pods } = apiResources;

const metaAt = ({ lines }: RigWatch, index: number) => lines.at(index)?.object['metadata'] as JsonObject;

async function withMaps(...names: readonly string[]): Promise<LocalApiRig> {
  const rig = new LocalApiRig({ historyLimit: 5 });
  for (const name of names) await rig.configMap(name);
  return rig;
}

const label = (rig: LocalApiRig, name: string, x: string | null) =>
  rig.object('patch', configMaps, { name, patch: 'merge', body: { metadata: { labels: { x } } } });

test('a watch without resource version or with version 0 starts with the existing objects', async () => {
  using rig = await withMaps('b', 'a');
  const watches = [rig.watch(configMaps), rig.watch(configMaps, { query: { resourceVersion: '0' } })];
  await rig.clock.advance(1);
  await rig.configMap('c');
  await rig.ask('delete', configMaps, { name: 'a' });
  await rig.clock.advance(1);
  for (const watch of watches) {
    assert.deepEqual(toldIn(watch), ['ADDED a', 'ADDED b', 'ADDED c', 'DELETED a']);
    watch.stop();
  }
  await rig.clock.advance(1);
  assert.deepEqual(
    watches.map(({ state }) => state),
    ['ended', 'ended'],
  );
  assert.deepEqual([rig.api.watchers, rig.clock.pendingTimers], [0, 0]);
});

test('sends each change after the requested version once', async () => {
  using rig = await withMaps('a');
  const resourceVersion = String(rig.store.version);
  await rig.configMap('b');
  const watch = rig.watch(configMaps, { query: { resourceVersion } });
  const later = rig.watch(configMaps, { query: { resourceVersion: String(rig.store.version + 1) } });
  await rig.clock.advance(1);
  await rig.configMap('c');
  await rig.configMap('d');
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED b', 'ADDED c', 'ADDED d']);
  assert.deepEqual(toldIn(later), ['ADDED d']);
});

test('sends an ERROR event for a compacted version and ends the watch', async () => {
  using rig = await withMaps('a', 'b', 'c', 'd', 'e', 'f', 'g');
  const watch = rig.watch(configMaps, { query: { resourceVersion: '2' } });
  await rig.clock.advance(1);
  assert.equal(watch.state, 'ended');
  assert.deepEqual(watch.lines, [
    {
      type: 'ERROR',
      object: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: `too old resource version: 2 (${rig.store.compactedUpTo(configMaps)})`,
        reason: 'Expired',
        code: 410,
      },
    },
  ]);
  assert.equal(rig.api.watchers, 0);
});

test('sends the existing objects as initial events and marks their end with a bookmark', async () => {
  using rig = await withMaps('a');
  const query = {
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: 'true',
  };
  const watch = rig.watch(configMaps, { query: { ...query, resourceVersion: '1' } });
  const silent = rig.watch(configMaps, { query: { ...query, allowWatchBookmarks: 'false' } });
  const fromNow = rig.watch(configMaps, { query: { ...query, sendInitialEvents: 'false' } });
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'BOOKMARK']);
  assert.deepEqual(watch.lines[1]?.object, {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: {
      resourceVersion: String(rig.store.version),
      annotations: { 'k8s.io/initial-events-end': 'true' },
    },
  });
  await rig.configMap('b');
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(silent), ['ADDED a', 'ADDED b']);
  assert.deepEqual(toldIn(fromNow), ['ADDED b']);
});

test('rejects invalid watch options before the watch starts', () => {
  using rig = new LocalApiRig();
  const refused = (query: Record<string, string>) => {
    try {
      rig.watch(configMaps, { query });
    } catch (error) {
      assert.ok(error instanceof StatusError);
      return [error.status.code, error.status.message.replace(/^.* is invalid: /, '')];
    }
    return assert.fail('should be rejected');
  };
  const match = 'resourceVersionMatch: Forbidden:';
  assert.deepEqual(refused({ sendInitialEvents: 'true' }), [
    422,
    `${match} sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`,
  ]);
  assert.deepEqual(refused({ resourceVersionMatch: 'NotOlderThan' }), [
    422,
    `${match} resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`,
  ]);
  const initial = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };
  assert.equal(refused({ ...initial, resourceVersion: '999' })[0], 504);
  assert.equal(refused({ resourceVersion: 'x' })[0], 400);
  assert.equal(refused({ timeoutSeconds: 'x' })[0], 400);
  assert.equal(refused({ fieldSelector: 'x=y' })[0], 400);
  assert.equal(refused({ labelSelector: '=' })[0], 400);
});

test('sends ADDED and DELETED when an object starts and stops to match', async () => {
  using rig = await withMaps('a', 'b');
  const watch = rig.watch(configMaps, { query: { labelSelector: 'x=1' } });
  await rig.clock.advance(1);
  await label(rig, 'a', '1');
  await rig.ask('patch', configMaps, { name: 'a', patch: 'merge', body: { data: { k: 'v' } } });
  await label(rig, 'a', '2');
  await label(rig, 'b', '2');
  await label(rig, 'a', '1');
  await rig.ask('delete', configMaps, { name: 'a' });
  await rig.clock.advance(1);
  assert.deepEqual(toldIn(watch), ['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED a', 'DELETED a']);
  assert.deepEqual(metaAt(watch, 2)['labels'], { x: '1' });
  const versions = watch.lines.map((_, index) => Number(metaAt(watch, index)['resourceVersion']));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
});

test('watches one object by path or by field selector', async () => {
  using rig = await withMaps('a', 'b');
  const watches = [
    rig.watch(configMaps, { name: 'b' }),
    rig.watch(configMaps, { query: { fieldSelector: 'metadata.name=b' } }),
  ];
  const elsewhere = rig.watch(configMaps, { namespace: 'other' });
  await rig.clock.advance(1);
  for (const watch of watches) assert.deepEqual(toldIn(watch), ['ADDED b']);
  assert.deepEqual(toldIn(elsewhere), []);
});

test('sends one shared object to all watchers', async () => {
  using rig = await withMaps();
  const watches = [rig.watch(configMaps), rig.watch(configMaps, { namespace: undefined })];
  await rig.clock.advance(1);
  await rig.configMap('a');
  await rig.clock.advance(1);
  assert.ok(watches[0]?.lines[0]?.object === watches[1]?.lines[0]?.object);
});

test('sends requested bookmarks every minute and before the watch ends', async () => {
  using rig = await withMaps('a');
  const query = { resourceVersion: String(rig.store.version), timeoutSeconds: '150' };
  const marked = rig.watch(configMaps, { query: { ...query, allowWatchBookmarks: 'true' } });
  const plain = rig.watch(configMaps, { query });
  await rig.clock.advance(1);
  await rig.pod('else');
  await rig.clock.advance(121_000);
  assert.deepEqual(toldIn(marked), ['BOOKMARK', 'BOOKMARK']);
  assert.deepEqual(marked.lines[1]?.object, {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(rig.store.version) },
  });
  await rig.clock.advance(27_500);
  assert.deepEqual([toldIn(marked).length, marked.state], [3, 'open']);
  await rig.clock.advance(2_000);
  assert.deepEqual([marked.state, plain.state, toldIn(plain)], ['ended', 'ended', []]);
  assert.equal(rig.clock.pendingTimers, 0);
});

test('ends a watch without timeout after 30 to 60 minutes', async () => {
  using rig = await withMaps('a');
  const watches = Array.from({ length: 20 }, () => rig.watch(configMaps));
  await rig.clock.advance(1_799_000);
  assert.ok(watches.every(({ state }) => state === 'open'));
  await rig.clock.advance(1_802_000);
  assert.ok(watches.every(({ state }) => state === 'ended'));
});

test('ends a slow watcher after its pending events without affecting others', async () => {
  using rig = new LocalApiRig({ maxWaiting: 100 });
  await rig.pod('a');
  const quick = rig.watch(pods);
  const slow = rig.api.watch(rig.call('watch', pods), rig.signal)[Symbol.asyncIterator]();
  const { value: first } = await slow.next();
  const versionOf = (object: JsonObject) => Number((object['metadata'] as JsonObject)['resourceVersion']);
  for (let i = 0; i < 150; i++) {
    const body = { metadata: { labels: { i: String(i) } } };
    await rig.object('patch', pods, { name: 'a', patch: 'merge', body });
    await rig.clock.advance(1);
  }
  assert.equal(quick.lines.length, 151);
  let expected = versionOf((first as ServedWatchEvent).object);
  for (let next = await slow.next(); next.done !== true; next = await slow.next())
    assert.equal(versionOf(next.value.object), ++expected);
  assert.equal(expected - versionOf((first as ServedWatchEvent).object), 100);
  assert.equal(rig.api.watchers, 1);
});

test('ends a watch that the client no longer reads', async () => {
  using rig = await withMaps('a');
  for await (const line of rig.api.watch(rig.call('watch', configMaps), rig.signal)) {
    assert.equal(line.type, 'ADDED');
    break;
  }
  assert.deepEqual([rig.api.watchers, rig.clock.pendingTimers], [0, 0]);
  await refusedWith(rig.ask('get', configMaps, { name: 'none' }), 404);
});

test('ends a slow watcher when its pending events exceed the size limit', async () => {
  using rig = await withMaps('a');
  const unread = rig.api.watch(rig.call('watch', configMaps), rig.signal)[Symbol.asyncIterator]();
  assert.equal((await unread.next()).value?.object['metadata'] !== undefined, true);
  const waits = unread.next();
  for (let round = 0; round < 40; round++) {
    const data = { text: `${round} ${'x'.repeat(1_000_000)}` };
    await rig.object('patch', configMaps, { name: 'a', patch: 'merge', body: { data } });
  }
  let lines = (await waits).done === true ? 0 : 1;
  for (let next = await unread.next(); next.done !== true; next = await unread.next()) lines++;
  // The slow watcher receives its pending events in order, so that it can resume without a gap.
  assert.ok(lines > 20 && lines < 30, String(lines));
});
