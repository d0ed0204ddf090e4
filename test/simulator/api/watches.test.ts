import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isApiCode } from '../../../src/api/index.ts';
import { ApiRig, podRef, pods, told } from '../../fakes/api-rig.ts';
import { scriptedApiFaults, type WatchFault } from './faults.ts';

const ofNode = { resource: pods, fieldSelector: 'spec.nodeName=n1' };

test('a watch begins with the existing objects, marks their end with a bookmark, and continues', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  harness.pod('b', { spec: { nodeName: 'n2' } });
  const watched = harness.watch(harness.node, ofNode);
  await harness.clock.advance(100);
  assert.deepEqual(told(watched), ['ADDED a', 'BOOKMARK']);
  const [, bookmark] = watched.events;
  assert.deepEqual(bookmark?.object.metadata, {
    resourceVersion: harness.api.version,
    annotations: { 'k8s.io/initial-events-end': 'true' },
  });
  harness.pod('c');
  harness.pod('c', { spec: { hostNetwork: true } });
  harness.api.deletePod('default', 'a', 0);
  await harness.clock.advance(100);
  assert.deepEqual(told(watched).slice(2), ['ADDED c', 'MODIFIED c', 'MODIFIED a', 'DELETED a']);
  const versions = watched.events.map(({ object }) => Number(object.metadata?.resourceVersion));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
  watched.stop();
  await harness.clock.advance(1);
  assert.equal((watched.end as Error).message, 'stopped');
  assert.deepEqual(harness.api.held(), { calls: 0, watches: 0 });
});

test('an object that no longer matches the selector is reported as deleted, with its previous content', async () => {
  using harness = new ApiRig();
  harness.pod('a', { status: { phase: 'Pending' } });
  const watched = harness.watch(harness.admin, { resource: pods, fieldSelector: 'status.phase=Pending' });
  await harness.clock.advance(10);
  harness.pod('a', { status: { phase: 'Running' } });
  harness.pod('a', { status: { phase: 'Pending' } });
  await harness.clock.advance(10);
  assert.deepEqual(told(watched), ['ADDED a', 'BOOKMARK', 'DELETED a', 'ADDED a']);
  const gone = watched.events[2]?.object as {
    status?: { phase?: string };
    metadata?: { resourceVersion?: string };
  };
  assert.equal(gone.status?.phase, 'Pending');
  assert.equal(Number(gone.metadata?.resourceVersion) + 1, Number(harness.api.version));
});

test('a watch resumes from a resource version, unless the version has expired', async () => {
  using harness = new ApiRig({ historyLimit: 3 });
  harness.pod('a');
  const from = harness.api.version;
  harness.pod('b');
  harness.api.deletePod('default', 'a', 0);
  const later = harness.watch(harness.node, { ...ofNode, begin: 'at-version', resourceVersion: from });
  await harness.clock.advance(10);
  assert.deepEqual(told(later), ['ADDED b', 'MODIFIED a', 'DELETED a']);
  for (const name of ['c', 'd', 'e']) harness.pod(name);
  const tooLate = harness.watch(harness.node, { ...ofNode, begin: 'at-version', resourceVersion: from });
  await harness.clock.advance(10);
  assert.ok(isApiCode(tooLate.end, 'API_GONE'));
  const older = harness.api.version;
  harness.pod('f');
  const newest = harness.api.version;
  harness.api.compact();
  assert.equal(harness.api.version, newest);
  const compacted = harness.watch(harness.node, { ...ofNode, begin: 'at-version', resourceVersion: older });
  const upToDate = harness.watch(harness.node, { ...ofNode, begin: 'at-version', resourceVersion: newest });
  const anything = harness.watch(harness.node, { ...ofNode, begin: 'at-version', resourceVersion: '0' });
  await harness.clock.advance(10);
  assert.ok(isApiCode(compacted.end, 'API_GONE'));
  assert.deepEqual([told(upToDate), upToDate.end], [[], undefined]);
  assert.deepEqual(told(anything), ['ADDED b', 'ADDED c', 'ADDED d', 'ADDED e', 'ADDED f']);
});

test('bookmarks are sent periodically, and the watch ends at its timeout', async () => {
  using harness = new ApiRig();
  const watched = harness.watch(harness.node, { ...ofNode, timeoutSeconds: 150 });
  harness.api.put(pods, { metadata: { name: 'else' } });
  await harness.clock.advance(149_000);
  assert.deepEqual(told(watched), ['BOOKMARK', 'BOOKMARK', 'BOOKMARK']);
  assert.equal(watched.events.at(-1)?.object.metadata?.resourceVersion, harness.api.version);
  assert.equal(watched.end, undefined);
  await harness.clock.advance(2_000);
  assert.equal(watched.end, 'ended');
  assert.equal(harness.clock.pendingTimers, 0);
});

test('a server without streaming lists rejects a watch that requests the existing objects', async () => {
  using harness = new ApiRig({ streamingLists: 'refused' });
  const watched = harness.watch(harness.node, ofNode);
  await harness.clock.advance(10);
  assert.ok(isApiCode(watched.end, 'API_INVALID'));
});

const struck = (fault: WatchFault, nth = 2) =>
  scriptedApiFaults({
    events: [{ resource: 'pods', matches: ({ type }) => type !== 'BOOKMARK', nth, fault }],
  });

async function threePods(fault: WatchFault) {
  const harness = new ApiRig({ faults: struck(fault), latencyMs: () => 1 });
  const watched = harness.watch(harness.node, ofNode);
  await harness.clock.advance(10);
  for (const name of ['a', 'b', 'c']) harness.pod(name);
  await harness.clock.advance(100);
  return { rig: harness, watched };
}

test('when an event of a watch is delayed, all later events are delivered late and in order', async () => {
  const { rig, watched } = await threePods({ kind: 'delay', ms: 5_000 });
  assert.deepEqual(told(watched), ['BOOKMARK', 'ADDED a']);
  await rig.clock.advance(4_800);
  assert.deepEqual(told(watched), ['BOOKMARK', 'ADDED a']);
  await rig.clock.advance(200);
  assert.deepEqual(told(watched), ['BOOKMARK', 'ADDED a', 'ADDED b', 'ADDED c']);
  assert.deepEqual(rig.api.faultsStruck(), { 'watch-delay': 1 });
});

test('an event may be delivered twice', async () => {
  const { watched } = await threePods({ kind: 'duplicate' });
  assert.deepEqual(told(watched), ['BOOKMARK', 'ADDED a', 'ADDED b', 'ADDED b', 'ADDED c']);
});

test('a watch may break, get a 410, or end early', async () => {
  const { watched: cut } = await threePods({ kind: 'cut' });
  assert.ok(isApiCode(cut.end, 'API_UNAVAILABLE'));
  const { watched: gone } = await threePods({ kind: 'gone' });
  assert.ok(isApiCode(gone.end, 'API_GONE'));
  const { rig, watched: ended } = await threePods({ kind: 'end' });
  assert.equal(ended.end, 'ended');
  assert.equal(rig.api.held().watches, 0);
});

test('watches of one resource, or all, can be disconnected', async () => {
  using harness = new ApiRig();
  const watched = harness.watch(harness.node, ofNode);
  await harness.clock.advance(10);
  harness.api.cutWatches();
  await harness.clock.advance(10);
  assert.ok(isApiCode(watched.end, 'API_UNAVAILABLE'));
});

test('a watcher that does not read is disconnected', async () => {
  using harness = new ApiRig({ latencyMs: () => 0, historyLimit: 10 });
  const events = harness.node
    .watch({ ...ofNode, begin: 'initial', timeoutSeconds: 600 }, harness.signal)
    [Symbol.asyncIterator]();
  await harness.done(events.next());
  for (let i = 0; i < 10_002; i++) harness.pod('a', { metadata: { labels: { i: String(i) } } });
  assert.equal(harness.api.held().watches, 0);
});

test('a watch that its client leaves is closed on the server', async () => {
  using harness = new ApiRig();
  const first = async () => {
    for await (const _ of harness.node.watch(
      { ...ofNode, begin: 'initial', timeoutSeconds: 600 },
      harness.signal,
    ))
      return;
  };
  await harness.done(first());
  assert.deepEqual([harness.api.held().watches, harness.clock.pendingTimers], [0, 0]);
  await assert.rejects(harness.get(podRef('none')));
  assert.equal(harness.clock.pendingTimers, 0);
});
