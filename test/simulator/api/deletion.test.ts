import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiResources, isApiCode } from '../../../src/api/index.ts';
import { ApiRig, podRef } from '../../fakes/api-rig.ts';

const meta = (harness: ApiRig, name = 'a') => harness.api.object(podRef(name))?.metadata;

test('a deleted pod on a node gets a deletionTimestamp, and is removed when its kubelet deletes it', async () => {
  using harness = new ApiRig();
  const { metadata } = harness.pod('a', { status: { phase: 'Running' } });
  harness.api.deletePod('default', 'a');
  const marked = meta(harness);
  assert.equal(marked?.deletionTimestamp, '2026-01-01T00:00:30Z');
  assert.equal(marked?.deletionGracePeriodSeconds, 30);
  assert.equal(marked?.generation, 2);
  await harness.done(
    harness.node.delete(podRef('a'), { gracePeriodSeconds: 0, uid: metadata.uid }, harness.signal),
  );
  assert.equal(meta(harness), undefined);
});

test('a later delete can only shorten the grace', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  harness.api.deletePod('default', 'a', 60);
  harness.api.deletePod('default', 'a', 90);
  harness.api.deletePod('default', 'a');
  assert.equal(meta(harness)?.deletionGracePeriodSeconds, 60);
  await harness.clock.advance(5_000);
  harness.api.deletePod('default', 'a', 20);
  assert.equal(meta(harness)?.deletionTimestamp, '2026-01-01T00:00:20Z');
  await harness.clock.advance(10_000);
  harness.api.deletePod('default', 'a', 10);
  assert.deepEqual(
    [meta(harness)?.deletionTimestamp, meta(harness)?.deletionGracePeriodSeconds],
    ['2026-01-01T00:00:15Z', 1],
  );
  harness.api.deletePod('default', 'a', 0);
  assert.equal(meta(harness), undefined);
});

test('pods that are not bound or have terminated are removed immediately', () => {
  using harness = new ApiRig();
  harness.pod('a', { spec: { nodeName: undefined } });
  harness.pod('b', { status: { phase: 'Succeeded' } });
  harness.pod('c', { spec: { terminationGracePeriodSeconds: 0 } });
  for (const name of ['a', 'b', 'c']) harness.api.deletePod('default', name);
  assert.deepEqual(harness.api.objects(apiResources.pods), []);
});

test('a negative grace period counts as one second', () => {
  using harness = new ApiRig();
  harness.pod('a');
  harness.api.deletePod('default', 'a', -5);
  assert.equal(meta(harness)?.deletionGracePeriodSeconds, 1);
});

test('unmet preconditions of a delete return 409', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  for (const options of [{ uid: 'other' }, { resourceVersion: '1' }]) {
    const call = harness.node.delete(podRef('a'), { gracePeriodSeconds: 0, ...options }, harness.signal);
    await assert.rejects(harness.done(call), (error) => isApiCode(error, 'API_CONFLICT'));
  }
  assert.notEqual(meta(harness), undefined);
});

test('a finalizer blocks the removal of its object', async () => {
  using harness = new ApiRig();
  harness.pod('a', { metadata: { finalizers: ['x/y'] } });
  harness.api.deletePod('default', 'a', 0);
  assert.deepEqual([meta(harness)?.deletionGracePeriodSeconds, meta(harness)?.finalizers], [0, ['x/y']]);
  const patch = { kind: 'merge', body: { metadata: { finalizers: null } } } as const;
  await harness.done(harness.admin.patch(podRef('a'), patch, harness.signal));
  assert.equal(meta(harness), undefined);
  const ref = { resource: apiResources.nodes, name: 'n' };
  harness.api.put(apiResources.nodes, { metadata: { name: 'n', finalizers: ['z'] } });
  harness.api.delete(ref);
  harness.api.delete(ref);
  assert.notEqual(harness.api.object(ref)?.metadata.deletionTimestamp, undefined);
  await harness.done(harness.admin.patch(ref, patch, harness.signal));
  assert.equal(harness.api.object(ref), undefined);
});

test('a deleted pod whose finalizers are removed within its grace period remains until its kubelet deletes it', async () => {
  using harness = new ApiRig();
  harness.pod('a', { metadata: { finalizers: ['x/y'] } });
  harness.api.deletePod('default', 'a', 30);
  const patch = { kind: 'merge', body: { metadata: { finalizers: null } } } as const;
  await harness.done(harness.admin.patch(podRef('a'), patch, harness.signal));
  assert.equal(meta(harness)?.deletionGracePeriodSeconds, 30);
});
