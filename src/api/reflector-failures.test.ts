import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  added,
  allTold,
  bookmark,
  listOf,
  modified,
  names,
  reflectorRig,
  refusal,
  syncedRig,
  type Thing,
  thing,
  unreachable,
} from '../../test/fakes/reflector-rig.ts';
import { settle } from '../../test/fakes/virtual-clock.ts';
import type { ApiList } from './client/client.ts';

test('advances only the resource version after a bookmark', async () => {
  const { reflector, server, changes, sets, clock } = await syncedRig();
  server.last.send(bookmark('50'));
  await clock.advance(1_500);
  assert.equal(reflector.version, '50');
  assert.equal(changes.length, 2);
  assert.equal(sets.length, 1);
  server.last.end();
  await settle();
  assert.equal(server.last.query.resourceVersion, '50');
  assert.equal(server.last.query.begin, 'at-version');
  await reflector.stop();
});

test('after an expired resource version, requests all objects at the last received version or newer, and if that has expired too, at the newest version', async () => {
  const { reflector, server, changes, clock } = await syncedRig();
  await clock.advance(5_000);
  server.refuse = ({ begin, resourceVersion }) =>
    begin === 'initial' && resourceVersion !== undefined ? refusal(410) : undefined;
  server.last.fail(refusal(410));
  await settle();
  assert.equal(names(reflector), 'a@3 b@5', 'cached objects remain available');
  assert.equal(reflector.hasSynced, true);
  await clock.advance(1_600);
  assert.deepEqual(
    server.watches.map(({ query }) => [query.begin, query.resourceVersion]),
    [
      ['initial', undefined],
      ['initial', '10'],
      ['initial', undefined],
    ],
  );
  server.last.send(added('a', '3'), added('c', '60'), allTold('70'));
  await settle();
  assert.deepEqual(changes.slice(2), ['deleted b@5', 'added c@60']);
  assert.equal(server.lists.length, 0);
  await reflector.stop();
});

test('stops requesting a resource version that the server does not have, in watches and in lists', async () => {
  const { reflector, server, clock } = await syncedRig();
  const tooLarge = refusal(504, 'Too large resource version: 10, current: 4');
  server.refuse = ({ begin }) => (begin === 'initial' ? refusal(422) : undefined);
  server.answer = ({ resourceVersion }) =>
    resourceVersion === undefined ? listOf('4', thing('a', '2')) : tooLarge;
  server.last.fail(tooLarge);
  await clock.advance(1_600);
  assert.deepEqual(
    server.lists.map(({ resourceVersion, limit }) => [resourceVersion, limit]),
    [
      ['10', undefined],
      [undefined, 500],
    ],
  );
  assert.equal(names(reflector), 'a@2', 'accepts an older state after the server was restored');
  assert.equal(reflector.version, '4');
  await reflector.stop();
});

for (const [what, error] of [
  ['is overloaded', () => refusal(429)],
  ['is unreachable', unreachable],
] as const) {
  test(`resumes the watch without a list when the server ${what}`, async () => {
    const { reflector, server, clock } = await syncedRig();
    server.refuse = (_, index) => (index < 4 ? error() : undefined);
    server.last.fail(error());
    await clock.advance(30_000);
    assert.equal(server.lists.length, 0);
    assert.deepEqual(
      server.watches.slice(1).map(({ query }) => [query.begin, query.resourceVersion]),
      Array.from({ length: 4 }, () => ['at-version', '10']),
    );
    server.last.send(modified('a', '11'));
    await settle();
    assert.equal(names(reflector), 'a@11 b@5');
    await reflector.stop();
  });
}

test('waits as long as the server requests before a retry', async () => {
  const { reflector, server, clock } = await syncedRig();
  server.last.fail(refusal(429, 'busy', 20_000));
  await clock.advance(19_000);
  assert.equal(server.watches.length, 1);
  await clock.advance(1_000);
  assert.equal(server.watches.length, 2);
  await reflector.stop();
});

test('sends no lists while the server is unreachable at start, and is not synced', async () => {
  const { reflector, server, clock, sets } = reflectorRig();
  server.refuse = (_, index) => (index < 5 ? unreachable() : undefined);
  reflector.start();
  await clock.advance(60_000);
  assert.equal(server.lists.length, 0);
  assert.equal(reflector.hasSynced, false);
  assert.deepEqual(sets, []);
  assert.match(reflector.problem ?? '', /connection refused/);
  server.last.send(allTold('1'));
  await settle();
  assert.equal(reflector.hasSynced, true);
  assert.equal(reflector.problem, undefined);
  await reflector.stop();
});

test('doubles the retry delay from 0.8 s up to 30 s, and adds a random delay of at most the same length', async () => {
  const { reflector, server, clock } = reflectorRig();
  const times: number[] = [];
  server.refuse = () => {
    times.push(clock.monotonicMs());
    return unreachable();
  };
  reflector.start();
  await clock.advanceUntil(() => times.length === 10, 600_000);
  const waits = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  const bases = [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000];
  waits.forEach((wait, index) => {
    const base = bases[index] ?? 0;
    assert.ok(wait >= base && wait < 2 * base, `delay ${index} is ${wait}`);
  });
  assert.ok(new Set(waits.slice(6)).size === 3, 'delays at the limit still have jitter');
  await reflector.stop();
});

test('uses the shortest retry delay again for a failure after two minutes without failures', async () => {
  const { reflector, server, clock } = await syncedRig();
  server.refuse = (_, index) => (index < 6 ? unreachable() : undefined);
  server.last.fail(unreachable());
  await clock.advanceUntil(() => server.watches.length === 7, 300_000);
  await clock.advance(121_000);
  const before = clock.monotonicMs();
  server.refuse = (_, index) => (index === 7 ? unreachable() : undefined);
  server.last.end();
  await clock.advanceUntil(() => server.watches.length === 9, 60_000);
  assert.ok(clock.monotonicMs() - before < 1_600);
  await reflector.stop();
});

test('reopens a watch immediately after its regular end', async () => {
  const { reflector, server, clock } = await syncedRig();
  await clock.advance(300_000);
  server.last.end();
  await settle();
  assert.equal(server.watches.length, 2);
  assert.equal(server.last.query.begin, 'at-version');
  await reflector.stop();
});

test('reopens a watch immediately if it was closed after it delivered events', async () => {
  const { reflector, server, clock } = await syncedRig();
  await clock.advance(5_000);
  server.last.fail(unreachable());
  await settle();
  assert.equal(server.watches.length, 2);
  await reflector.stop();
});

test('counts a watch that ends within a second without events as a failure', async () => {
  const { reflector, server, clock } = await syncedRig();
  await clock.advance(5_000);
  server.last.end();
  await settle();
  assert.equal(server.watches.length, 2);
  server.last.send(bookmark('10'));
  server.last.end();
  await settle();
  assert.equal(server.watches.length, 2, 'an unchanged bookmark is no event');
  assert.match(reflector.problem ?? '', /ended at once without events/);
  await clock.advance(1_600);
  assert.equal(server.watches.length, 3);
  assert.equal(server.last.query.begin, 'initial');
  await reflector.stop();
});

test('does not count a watch that ends within a second with events as a failure', async () => {
  const { reflector, server, clock } = await syncedRig();
  await clock.advance(5_000);
  server.last.end();
  await settle();
  server.last.send(modified('a', '11'));
  server.last.end();
  await settle();
  assert.equal(server.watches.length, 3);
  assert.equal(server.last.query.resourceVersion, '11');
  await reflector.stop();
});

test('falls back to a list if the stream ended before its initial events were complete', async () => {
  const { reflector, server } = reflectorRig();
  server.answer = () => listOf('9', thing('a', '3'));
  reflector.start();
  await settle();
  server.last.send(added('z', '1'));
  server.last.end();
  await settle();
  assert.equal(names(reflector), 'a@3');
  await reflector.stop();
});

test('falls back to lists if the server silently ignores the request for initial events', async () => {
  const { reflector, server, clock } = reflectorRig();
  server.answer = () => listOf('9', thing('a', '3'));
  reflector.start();
  await clock.advance(29_000);
  server.last.send(added('a', '3'));
  await clock.advance(29_000);
  assert.equal(reflector.hasSynced, false);
  await clock.advance(1_000);
  assert.equal(names(reflector), 'a@3');
  assert.equal(server.watches[0]?.closed, true);
  server.last.fail(refusal(410));
  await clock.advance(2_000);
  assert.equal(server.watches.filter(({ query }) => query.begin === 'initial').length, 1);
  assert.equal(server.lists.length, 2);
  await reflector.stop();
});

test('aborts a watch that the server did not close at its requested end', async () => {
  const { reflector, server, clock } = await syncedRig();
  const { timeoutSeconds } = server.last.query;
  await clock.advance(timeoutSeconds * 1_000 + 29_000);
  assert.equal(server.watches.length, 1);
  await clock.advance(1_000);
  assert.equal(server.watches.length, 2);
  assert.equal(server.last.query.begin, 'at-version');
  assert.equal(server.watches[0]?.closed, true);
  await reflector.stop();
});

test('keeps cached objects after a failed list, and removes them after an empty list', async () => {
  const { reflector, server, clock, sets } = await syncedRig();
  server.refuse = ({ begin }) => (begin === 'initial' ? refusal(422) : undefined);
  server.answer = (_, index) =>
    [refusal(500), { metadata: {} } as ApiList<Thing>, listOf('20')][index] ?? listOf('20');
  server.last.fail(refusal(500));
  await clock.advanceUntil(() => server.lists.length === 2, 60_000);
  assert.equal(names(reflector), 'a@3 b@5');
  await clock.advanceUntil(() => server.lists.length === 3, 60_000);
  await settle();
  assert.equal(names(reflector), '');
  assert.deepEqual(sets, ['a@3 b@5', '']);
  await reflector.stop();
});

test('does not treat a list response without items as an empty list', async () => {
  const { reflector, server, clock } = await syncedRig();
  server.refuse = ({ begin }) => (begin === 'initial' ? refusal(422) : undefined);
  server.answer = () => ({ metadata: { resourceVersion: '20' } }) as ApiList<Thing>;
  server.last.fail(refusal(410));
  await clock.advance(10_000);
  assert.equal(names(reflector), 'a@3 b@5');
  assert.match(reflector.problem ?? '', /no items/);
  await reflector.stop();
});

test('notifies no listener when a new list changes nothing', async () => {
  const { reflector, server, clock, changes, sets } = await syncedRig();
  const [held] = reflector.list();
  server.last.fail(refusal(410));
  await clock.advance(1_600);
  server.last.send(added('a', '3'), added('b', '5'), allTold('40'));
  await settle();
  assert.equal(changes.length, 2);
  assert.equal(sets.length, 1);
  assert.equal(reflector.version, '40');
  assert.equal(reflector.list()[0], held, 'it is the identical object');
  await reflector.stop();
});
