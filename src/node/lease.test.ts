import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeWorld, refusal } from '../../test/fakes/node-world.ts';
import { apiResources } from '../api/index.ts';
import type { Node } from '../kinds/index.ts';
import { NodeLease } from './lease.ts';
import { NodeLog } from './node-log.ts';

function started(environment: NodeWorld, node: () => Node | undefined) {
  const deps = environment.deps();
  const lease = new NodeLease({
    ...deps,
    node: { current: node },
    log: new NodeLog(deps.logger, deps.problems),
  });
  const controller = new AbortController();
  const ended = lease.run(controller.signal).catch(() => {});
  return async () => {
    controller.abort(new Error('stopped'));
    await ended;
    assert.equal(environment.clock.pendingTimers, 0);
  };
}

const node: Node = { metadata: { name: 'n1', uid: 'u1' } };

test('creates the lease of the Node, and renews it every quarter of its duration without a read', async () => {
  const environment = new NodeWorld();
  const stop = started(environment, () => node);
  await environment.clock.advance(1);
  assert.deepEqual(environment.api.lease()?.spec, {
    holderIdentity: 'n1',
    leaseDurationSeconds: 40,
    renewTime: '2026-01-01T00:00:00.000000Z',
  });
  assert.deepEqual(environment.api.lease()?.metadata?.ownerReferences, [
    { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' },
  ]);
  await environment.clock.advance(60_000);
  const gets = environment.api.count('get');
  assert.equal(gets, 1);
  const at = environment.api.calls.filter(({ verb }) => verb === 'update').map(({ atMs }) => atMs);
  assert.equal(at.length, 5);
  for (const [index, ms] of at.entries()) {
    const gapMs = ms - (at[index - 1] ?? 0);
    assert.ok(gapMs >= 10_000 && gapMs <= 10_400, `${gapMs}`);
  }
  assert.equal(environment.api.lease()?.metadata?.name, 'n1');
  await stop();
});

test('makes no API call without a Node, and creates a lease within a second when there is one', async () => {
  const environment = new NodeWorld();
  let known: Node | undefined;
  const stop = started(environment, () => known);
  await environment.clock.advance(60_000);
  assert.equal(environment.api.calls.length, 0);
  known = node;
  await environment.clock.advance(1_100);
  assert.ok(environment.api.lease());
  known = undefined;
  await environment.clock.advance(30_000);
  const calls = environment.api.calls.length;
  await environment.clock.advance(60_000);
  assert.equal(environment.api.calls.length, calls);
  await stop();
});

test('renews an existing lease immediately', async () => {
  const environment = new NodeWorld();
  environment.api.put(apiResources.leases, {
    metadata: { name: 'n1', namespace: 'kube-node-lease', uid: 'l' },
    spec: { holderIdentity: 'n1', leaseDurationSeconds: 10, renewTime: 'old' },
  } as never);
  const stop = started(environment, () => node);
  await environment.clock.advance(1);
  assert.equal(environment.api.lease()?.spec?.leaseDurationSeconds, 40);
  assert.equal(environment.api.count('create'), 0);
  await stop();
});

test('reads and renews the lease after a conflict', async () => {
  const environment = new NodeWorld();
  const stop = started(environment, () => node);
  await environment.clock.advance(1);
  environment.api.put(apiResources.leases, {
    ...environment.api.lease(),
    spec: { holderIdentity: 'n1', renewTime: 'x' },
  } as never);
  await environment.clock.advance(11_000);
  assert.notEqual(environment.api.lease()?.spec?.renewTime, 'x');
  assert.equal(environment.api.count('get'), 2);
  assert.equal(environment.redials, 0);
  await stop();
});

test('recreates a deleted lease', async () => {
  const environment = new NodeWorld();
  const stop = started(environment, () => node);
  await environment.clock.advance(1);
  environment.api.objects.clear();
  await environment.clock.advance(11_000);
  assert.ok(environment.api.lease());
  await stop();
});

test('sets the recreated Node as the owner of the lease', async () => {
  const environment = new NodeWorld();
  let uid = 'u1';
  const stop = started(environment, () => ({ metadata: { name: 'n1', uid } }));
  await environment.clock.advance(1);
  uid = 'u2';
  await environment.clock.advance(11_000);
  assert.equal(environment.api.lease()?.metadata?.ownerReferences?.[0]?.uid, 'u2');
  assert.equal(environment.api.lease()?.metadata?.ownerReferences?.length, 1);
  await stop();
});

test('retries a renewal five times, with a new connection from the second failure on, then with back-off until it succeeds', async () => {
  const environment = new NodeWorld();
  const stop = started(environment, () => node);
  await environment.clock.advance(1);
  environment.api.refuse = () => refusal(503, 'away');
  const before = environment.api.count('update');
  await environment.clock.advance(13_000);
  assert.equal(environment.api.count('update') - before, 5);
  assert.ok(environment.redials >= 4);
  const gets = environment.api.calls
    .filter(({ verb, atMs }) => verb === 'get' && atMs > 1_000)
    .map(({ atMs }) => atMs);
  assert.equal((gets[1] ?? 0) - (gets[0] ?? 0), 200);
  assert.equal((gets[2] ?? 0) - (gets[1] ?? 0), 400);
  await environment.clock.advance(60_000);
  environment.api.refuse = () => undefined;
  await environment.clock.advance(7_000);
  const renewedMs = Date.parse(environment.api.lease()?.spec?.renewTime ?? '');
  assert.ok(environment.clock.now() - renewedMs <= 7_000);
  await stop();
});
