import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiResources, isApiCode } from '../../../src/api/index.ts';
import { ApiRig, podRef } from '../../fakes/api-rig.ts';

const meta = (rig: ApiRig, name = 'a') => rig.api.object(podRef(name))?.metadata;

test('a deleted pod on a node gets a deletionTimestamp, and is removed when its kubelet deletes it', async () => {
  using rig = new ApiRig();
  const { metadata } = rig.pod('a', { status: { phase: 'Running' } });
  rig.api.deletePod('default', 'a');
  const marked = meta(rig);
  assert.equal(marked?.deletionTimestamp, '2026-01-01T00:00:30Z');
  assert.equal(marked?.deletionGracePeriodSeconds, 30);
  assert.equal(marked?.generation, 2);
  await rig.done(rig.node.delete(podRef('a'), { gracePeriodSeconds: 0, uid: metadata.uid }, rig.signal));
  assert.equal(meta(rig), undefined);
});

test('a later delete can only shorten the grace', async () => {
  using rig = new ApiRig();
  rig.pod('a');
  rig.api.deletePod('default', 'a', 60);
  rig.api.deletePod('default', 'a', 90);
  rig.api.deletePod('default', 'a');
  assert.equal(meta(rig)?.deletionGracePeriodSeconds, 60);
  await rig.clock.advance(5_000);
  rig.api.deletePod('default', 'a', 20);
  assert.equal(meta(rig)?.deletionTimestamp, '2026-01-01T00:00:20Z');
  await rig.clock.advance(10_000);
  rig.api.deletePod('default', 'a', 10);
  assert.deepEqual(
    [meta(rig)?.deletionTimestamp, meta(rig)?.deletionGracePeriodSeconds],
    ['2026-01-01T00:00:15Z', 1],
  );
  rig.api.deletePod('default', 'a', 0);
  assert.equal(meta(rig), undefined);
});

test('pods that are not bound or have terminated are removed immediately', () => {
  using rig = new ApiRig();
  rig.pod('a', { spec: { nodeName: undefined } });
  rig.pod('b', { status: { phase: 'Succeeded' } });
  rig.pod('c', { spec: { terminationGracePeriodSeconds: 0 } });
  for (const name of ['a', 'b', 'c']) rig.api.deletePod('default', name);
  assert.deepEqual(rig.api.objects(apiResources.pods), []);
});

test('a negative grace is one second', () => {
  using rig = new ApiRig();
  rig.pod('a');
  rig.api.deletePod('default', 'a', -5);
  assert.equal(meta(rig)?.deletionGracePeriodSeconds, 1);
});

test('unmet preconditions return 409', async () => {
  using rig = new ApiRig();
  rig.pod('a');
  for (const options of [{ uid: 'other' }, { resourceVersion: '1' }]) {
    const call = rig.node.delete(podRef('a'), { gracePeriodSeconds: 0, ...options }, rig.signal);
    await assert.rejects(rig.done(call), (error) => isApiCode(error, 'API_CONFLICT'));
  }
  assert.notEqual(meta(rig), undefined);
});

test('a finalizer blocks the removal of its object', async () => {
  using rig = new ApiRig();
  rig.pod('a', { metadata: { finalizers: ['x/y'] } });
  rig.api.deletePod('default', 'a', 0);
  assert.deepEqual([meta(rig)?.deletionGracePeriodSeconds, meta(rig)?.finalizers], [0, ['x/y']]);
  const patch = { kind: 'merge', body: { metadata: { finalizers: null } } } as const;
  await rig.done(rig.admin.patch(podRef('a'), patch, rig.signal));
  assert.equal(meta(rig), undefined);
  const ref = { resource: apiResources.nodes, name: 'n' };
  rig.api.put(apiResources.nodes, { metadata: { name: 'n', finalizers: ['z'] } });
  rig.api.delete(ref);
  rig.api.delete(ref);
  assert.notEqual(rig.api.object(ref)?.metadata.deletionTimestamp, undefined);
  await rig.done(rig.admin.patch(ref, patch, rig.signal));
  assert.equal(rig.api.object(ref), undefined);
});

test('a pod whose finalizers are removed within its grace waits for its kubelet', async () => {
  using rig = new ApiRig();
  rig.pod('a', { metadata: { finalizers: ['x/y'] } });
  rig.api.deletePod('default', 'a', 30);
  const patch = { kind: 'merge', body: { metadata: { finalizers: null } } } as const;
  await rig.done(rig.admin.patch(podRef('a'), patch, rig.signal));
  assert.equal(meta(rig)?.deletionGracePeriodSeconds, 30);
});
