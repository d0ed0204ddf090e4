import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  added,
  allTold,
  bookmark,
  deleted,
  listOf,
  modified,
  names,
  reflectorRig,
  refusal,
  syncedRig,
  type Thing,
  thing,
  unreachable,
} from '../../../test/fakes/reflector-rig.ts';
import { settle } from '../../../test/fakes/virtual-clock.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ApiList } from '../client/client.ts';

test('receives existing objects and their changes by one watch', async () => {
  const { reflector, server, changes, sets, clock } = reflectorRig();
  reflector.start();
  await settle();
  const { begin, resourceVersion, fieldSelector, timeoutSeconds } = server.last.query;
  assert.deepEqual(
    { begin, resourceVersion, fieldSelector },
    {
      begin: 'initial',
      resourceVersion: undefined,
      fieldSelector: 'spec.nodeName=n1',
    },
  );
  assert.ok(timeoutSeconds >= 300 && timeoutSeconds <= 600);
  server.last.send(added('a', '3'), added('b', '5'));
  await settle();
  assert.equal(reflector.hasSynced, false);
  assert.equal(names(reflector), '', 'nothing is visible before the set is complete');
  server.last.send(allTold('10'));
  await settle();
  assert.equal(reflector.hasSynced, true);
  assert.deepEqual(sets, ['a@3 b@5']);
  server.last.send(modified('a', '11'), deleted('b', '12'), added('c', '13'));
  await clock.advance(0);
  assert.deepEqual(changes, ['added a@3', 'added b@5', 'updated a@11', 'deleted b@5', 'added c@13']);
  assert.deepEqual(sets.slice(1), ['a@11 c@13'], 'delivers simultaneous changes together');
  assert.equal(reflector.version, '13');
  assert.equal(server.watches.length, 1);
  assert.equal(server.lists.length, 0);
  await reflector.stop();
});

test('notifies listeners once of an empty set when the initial read is complete', async () => {
  const { reflector, server, sets } = reflectorRig();
  reflector.start();
  await settle();
  server.last.send(allTold('10'));
  await settle();
  assert.deepEqual(sets, ['']);
  await reflector.stop();
});

test('includes changes that were received before the initial set is complete', async () => {
  const { reflector, server } = reflectorRig();
  reflector.start();
  await settle();
  server.last.send(added('a', '3'), added('b', '4'), modified('a', '6'), deleted('b', '7'), bookmark('8'));
  await settle();
  assert.equal(reflector.hasSynced, false, 'a bookmark without the annotation does not complete the set');
  server.last.send(allTold('9'));
  await settle();
  assert.equal(names(reflector), 'a@6');
  await reflector.stop();
});

for (const status of [400, 403, 405, 422, 500]) {
  test(`lists and then watches with a server that rejects streaming with ${status}`, async () => {
    const { reflector, server, clock } = reflectorRig();
    server.refuse = ({ begin }) => (begin === 'initial' ? refusal(status) : undefined);
    server.answer = () => listOf('20', thing('a', '3'));
    reflector.start();
    await settle();
    assert.equal(clock.monotonicMs(), 0, 'without a delay');
    assert.deepEqual(
      server.lists.map(({ resourceVersion, limit }) => ({ resourceVersion, limit })),
      [{ resourceVersion: '0', limit: 500 }],
    );
    assert.equal(server.last.query.begin, 'at-version');
    assert.equal(server.last.query.resourceVersion, '20');
    server.last.send(added('b', '21'));
    await settle();
    assert.equal(names(reflector), 'a@3 b@21');
    await reflector.stop();
  });
}

test('does not request a streaming list from a server that rejected one from another reflector in the last ten minutes', async () => {
  const { reflector, server, clock } = reflectorRig();
  const output = 'a watch stream was requested by the client but a feature of the storage is disabled';
  server.refuse = ({ begin }) => (begin === 'initial' ? refusal(500, output) : undefined);
  server.answer = () => listOf('20');
  const rest = [reflectorRig({ clock }, server), reflectorRig({ clock }, server)].map(
    (harness) => harness.reflector,
  );
  const streams = () => server.watches.filter(({ query }) => query.begin === 'initial').length;
  reflector.start();
  await settle();
  assert.equal(streams(), 1);
  rest[0]?.start();
  await settle();
  assert.equal(rest[0]?.hasSynced, true);
  assert.equal(streams(), 1);
  await clock.advance(600_000);
  rest[1]?.start();
  await settle();
  assert.equal(streams(), 2);
  for (const each of [reflector, ...rest]) await each.stop();
});

test('combines a list of several pages', async () => {
  const { reflector, server, sets } = reflectorRig();
  server.refuse = ({ begin }) => (begin === 'initial' ? refusal(422) : undefined);
  const pages: Readonly<Record<string, ApiList<Thing>>> = {
    '': { metadata: { resourceVersion: '20', continue: 'p2' }, items: [thing('a', '3')] },
    p2: { metadata: { resourceVersion: '20', continue: 'p3' }, items: [thing('b', '4')] },
    p3: { metadata: { resourceVersion: '20' }, items: [thing('c', '5')] },
  };
  server.answer = ({ continue: token = '' }) => pages[token] ?? assert.fail(`No page ${token}`);
  reflector.start();
  await settle();
  assert.deepEqual(sets, ['a@3 b@4 c@5']);
  assert.deepEqual(
    server.lists.map(({ resourceVersion, continue: token }) => [resourceVersion, token]),
    [
      ['0', undefined],
      [undefined, 'p2'],
      [undefined, 'p3'],
    ],
  );
  await reflector.stop();
});

test('lists again immediately, at the newest version, after the continue token of a page expired', async () => {
  const { reflector, server, clock } = reflectorRig();
  server.refuse = ({ begin }) => (begin === 'initial' ? refusal(422) : undefined);
  server.answer = ({ continue: token, resourceVersion }) => {
    if (token !== undefined) return refusal(410);
    if (resourceVersion === undefined) return listOf('30', thing('a', '3'));
    return { metadata: { resourceVersion: '20', continue: 'p2' }, items: [] };
  };
  reflector.start();
  await settle();
  assert.equal(clock.monotonicMs(), 0);
  assert.equal(names(reflector), 'a@3');
  assert.equal(reflector.version, '30');
  await reflector.stop();
});

test('reports a deleted and an added object when an object was recreated, by a watch and by a list', async () => {
  const { reflector, server, changes, clock } = await syncedRig();
  server.last.send(added('a', '11', 'other'));
  await settle();
  assert.deepEqual(changes.slice(2), ['deleted a@3', 'added a@11']);
  server.last.fail(refusal(410));
  await clock.advance(1_600);
  server.last.send(added('a', '20', 'third'), added('b', '5'), allTold('40'));
  await settle();
  assert.deepEqual(changes.slice(4), ['deleted a@11', 'added a@20']);
  await reflector.stop();
});

test('ignores duplicate and late events', async () => {
  const { reflector, server, changes } = await syncedRig();
  server.last.send(modified('a', '11'), modified('a', '11'), modified('a', '9'), added('b', '5'));
  server.last.send({ type: 'DELETED', object: thing('a', '12', { uid: 'an-older-one' }) });
  await settle();
  assert.deepEqual(changes.slice(2), ['updated a@11']);
  assert.equal(reflector.version, '12');
  server.last.send(deleted('b', '13'), added('b', '5'));
  await settle();
  assert.deepEqual(changes.slice(3), ['deleted b@5'], 'a deleted object does not reappear');
  await reflector.stop();
});

test('reports and skips objects without name or UID and keeps their cached version', async () => {
  const { reflector, server, changes, warnings, clock } = await syncedRig();
  server.last.send(
    { type: 'ADDED', object: {} },
    { type: 'MODIFIED', object: { metadata: { name: 'a', namespace: 'default', resourceVersion: '20' } } },
    { type: 'ADDED', object: null as unknown as Thing },
    { type: 'DELETED', object: {} },
    { type: 'BOOKMARK', object: {} },
  );
  await settle();
  assert.equal(reflector.skipped, 4);
  assert.equal(changes.length, 2);
  assert.deepEqual(warnings().slice(0, 1), [
    'Skipped object of pods with spec.nodeName=n1 as it has no name',
  ]);
  server.last.fail(refusal(410));
  await clock.advance(1_600);
  server.last.send(
    { type: 'ADDED', object: { metadata: { name: 'a', namespace: 'default' } } },
    { type: 'ADDED', object: { metadata: { name: 'new', namespace: 'default' } } },
    allTold('40'),
  );
  await settle();
  assert.equal(names(reflector), 'a@3', 'b is deleted, a exists though it cannot be read');
  await reflector.stop();
});

test('skips objects for which the check function returns a problem or throws', async () => {
  const check = (object: Thing) => {
    if (object.metadata?.name === 'b') return 'it has no containers';
    if (object.metadata?.name === 'c') throw new Error('surprise');
    return undefined;
  };
  const { reflector, server, warnings } = reflectorRig({ check });
  reflector.start();
  await settle();
  server.last.send(added('a', '1'), added('b', '2'), added('c', '3'), allTold('10'));
  await settle();
  assert.equal(names(reflector), 'a@1');
  assert.deepEqual(warnings(), [
    'Skipped object of pods with spec.nodeName=n1 as default/b is not valid: it has no containers',
  ]);
  await reflector.stop();
});

test('caches neither managed fields nor fields that the `keep` function removes', async () => {
  const written = { ...thing('a', '1'), more: 'x' } as Thing;
  const object = { ...written, metadata: { ...written.metadata, managedFields: [{ manager: 'kubectl' }] } };
  const plain = reflectorRig();
  const slim = reflectorRig({ keep: ({ metadata }) => ({ metadata }) });
  for (const { reflector, server } of [plain, slim]) {
    reflector.start();
    await settle();
    server.last.send({ type: 'ADDED', object }, allTold('2'));
    await settle();
    await reflector.stop();
  }
  assert.deepEqual(plain.reflector.list(), [written]);
  assert.deepEqual(slim.reflector.list(), [{ metadata: object.metadata }]);
});

test('resolves waiters after the first read and rejects them with their own signal', async () => {
  const { reflector, server } = reflectorRig();
  reflector.start();
  const patience = new AbortController();
  const impatient = reflector.waitForSync(patience.signal);
  const waiting = reflector.waitForSync(new AbortController().signal);
  patience.abort(new KubelingError('CANCELLED', 'enough'));
  await assert.rejects(impatient, /enough/);
  await settle();
  server.last.send(allTold('1'));
  await waiting;
  await reflector.waitForSync(new AbortController().signal);
  await reflector.stop();
});

test('closes the watch when stopped, and reads all objects again when restarted', async () => {
  const { reflector, server, clock, sets } = await syncedRig();
  server.last.send(modified('a', '11'));
  await settle();
  const stopped = reflector.stop();
  reflector.start();
  await stopped;
  await settle();
  assert.equal(server.watches[0]?.closed, true);
  assert.equal(server.watches.length, 2, 'a start right after a stop takes effect');
  assert.equal(reflector.hasSynced, false);
  assert.equal(names(reflector), 'a@11 b@5', 'cached objects are readable meanwhile');
  assert.equal(server.last.query.resourceVersion, '11');
  server.last.send(added('a', '11'), added('b', '5'), allTold('12'));
  await settle();
  assert.equal(reflector.hasSynced, true);
  assert.deepEqual(sets.at(-1), 'a@11 b@5');
  reflector.start();
  await settle();
  assert.equal(server.watches.length, 2);
  await reflector.stop();
  assert.equal(clock.pendingTimers, 0);
  assert.equal(reflector.isRunning, false);
});

test('closes watches, cancels delays and rejects waiters when disposed', async () => {
  const { reflector, server, clock } = await syncedRig();
  await reflector[Symbol.asyncDispose]();
  assert.equal(server.last.closed, true);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(names(reflector), '');
  reflector.start();
  assert.equal(reflector.isRunning, false);
  await assert.rejects(reflector.waitForSync(new AbortController().signal), /was (stopped|disposed)/);

  const other = reflectorRig();
  other.server.refuse = unreachable;
  other.reflector.start();
  await settle();
  assert.equal(other.clock.pendingTimers, 1, 'it waits to retry');
  const waiting = other.reflector.waitForSync(new AbortController().signal);
  waiting.catch(() => {});
  await other.reflector[Symbol.asyncDispose]();
  assert.equal(other.clock.pendingTimers, 0);
  await assert.rejects(waiting, /was disposed/);
});

test('continues when a listener throws', async () => {
  const { reflector, server, changes, lines } = reflectorRig();
  reflector.onChange(() => {
    throw new Error('mine');
  });
  reflector.start();
  await settle();
  server.last.send(added('a', '1'), allTold('2'));
  await settle();
  assert.deepEqual(changes, ['added a@1']);
  assert.ok(lines().some((line) => line.includes('Listener of change of pods')));
  await reflector.stop();
});

test('logs a problem once while it persists, and its end once', async () => {
  const { reflector, server, clock, lines } = await syncedRig();
  server.refuse = (_, index) => (index < 6 ? unreachable() : undefined);
  server.last.fail(unreachable());
  await clock.advance(200_000);
  server.last.send(bookmark('11'));
  await settle();
  assert.equal(lines().filter((line) => line.startsWith('Failed to watch')).length, 1);
  assert.equal(lines().filter((line) => line.startsWith('Watching')).length, 1);
  await reflector.stop();
});

test('does not use more memory after many events', async () => {
  const { reflector, server, changes } = await syncedRig();
  for (let version = 11; version < 5_011; version++)
    server.last.send(version % 2 === 0 ? deleted('x', `${version}`) : added('x', `${version}`));
  await settle();
  await settle();
  assert.equal(reflector.list().length, 2);
  assert.equal(changes.length, 5_002);
  await reflector.stop();
});
