import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { apiError } from '../api/index.ts';
import type { ConfigMap } from '../kinds/index.ts';
import { collectLogs } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { CacheStore } from './cache-store.ts';
import { objectTtlMs } from './object-ttl.ts';

const { signal } = new AbortController();
const object = { namespace: 'ns', name: 'n' };
const [one, two] = [podUid('one'), podUid('two')];
const version = (resourceVersion: string): ConfigMap => ({ metadata: { resourceVersion } });
const refusal = (status: number) => apiError({ what: 'get configmaps/n', status, answer: {} });

function rig() {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const server: { answer: () => ConfigMap | Promise<ConfigMap>; ttlMs: number } = {
    answer: () => version('5'),
    ttlMs: 60_000,
  };
  const store = new CacheStore<ConfigMap>({
    clock,
    logger: collectLogs(clock).logger,
    ttlMs: () => server.ttlMs,
    fetch: async (_object, freshness) => {
      asked.push(freshness);
      return await server.answer();
    },
  });
  const read = async () => (await store.get(object, signal))?.metadata?.resourceVersion;
  const fails = (error: Error) => {
    server.answer = () => Promise.reject(error);
  };
  return { clock, asked, server, store, read, fails };
}

test('an object nobody refers to is not registered', async () => {
  const { store, read } = rig();
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED', message: 'object "ns"/"n" not registered' });
  store.add(object, one);
  store.add(object, two);
  store.remove(object, one);
  assert.equal(await read(), '5');
  store.remove(object, two);
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
});

test('it is asked for once until its time is over, then for whatever is at hand', async () => {
  const { clock, asked, store, read } = rig();
  store.add(object, one);
  await read();
  await clock.advance(59_999);
  await read();
  assert.deepEqual(asked, ['newest']);
  await clock.advance(1);
  await read();
  assert.deepEqual(asked, ['newest', 'any']);
});

test('the cluster may change the time at any moment', async () => {
  const { clock, asked, server, store, read } = rig();
  store.add(object, one);
  await read();
  server.ttlMs = 300_000;
  await clock.advance(200_000);
  await read();
  assert.equal(asked.length, 1);
  server.ttlMs = 0;
  await read();
  assert.equal(asked.length, 2);
});

test('a new reference throws away what is known; the same one again does not', async () => {
  const { asked, store, read } = rig();
  store.add(object, one);
  await read();
  store.add(object, one);
  await read();
  assert.deepEqual(asked, ['newest']);
  store.add(object, two);
  await read();
  assert.deepEqual(asked, ['newest', 'newest']);
});

test('an answer asked for before a new reference does not count for it', async () => {
  const { asked, server, store, read } = rig();
  const slow = Promise.withResolvers<ConfigMap>();
  store.add(object, one);
  server.answer = () => slow.promise;
  const early = read();
  await settle();
  store.add(object, two);
  server.answer = () => version('6');
  assert.equal(await read(), '6');
  slow.resolve(version('5'));
  assert.equal(await early, '5');
  assert.equal(await read(), '6');
  assert.equal(asked.length, 2);
});

test('an older version never takes the place of a newer one', async () => {
  const { clock, asked, server, store, read } = rig();
  store.add(object, one);
  server.answer = () => version('10');
  await read();
  server.answer = () => version('9');
  await clock.advance(60_000);
  assert.equal(await read(), '10');
  server.answer = () => version('11');
  assert.equal(await read(), '11');
  assert.equal(asked.length, 3);
});

test('when the server fails what is known serves, and the next reader asks again', async () => {
  const { clock, asked, server, store, read, fails } = rig();
  store.add(object, one);
  await read();
  await clock.advance(60_000);
  fails(refusal(500));
  assert.equal(await read(), '5');
  server.answer = () => version('6');
  assert.equal(await read(), '6');
  assert.equal(asked.length, 3);
});

test('a failure with nothing known is the reader’s', async () => {
  const { store, read, fails } = rig();
  store.add(object, one);
  fails(refusal(403));
  await assert.rejects(read(), { code: 'API_FORBIDDEN' });
});

test('that there is none is an answer, but asked for anew by each reader', async () => {
  const { asked, server, store, read, fails } = rig();
  store.add(object, one);
  fails(refusal(404));
  assert.equal(await read(), undefined);
  fails(refusal(500));
  assert.equal(await read(), undefined);
  server.answer = () => version('7');
  assert.equal(await read(), '7');
  assert.deepEqual(asked, ['newest', 'newest', 'newest']);
});

test('an object that was deleted is not served any longer than its time', async () => {
  const { clock, store, read, fails } = rig();
  store.add(object, one);
  await read();
  fails(refusal(404));
  await clock.advance(60_000);
  assert.equal(await read(), undefined);
});

test('readers at the same time share one request', async () => {
  const { asked, store, read } = rig();
  store.add(object, one);
  assert.deepEqual(await Promise.all([read(), read(), read()]), ['5', '5', '5']);
  assert.equal(asked.length, 1);
});

test('the time objects may be used is a minute unless the node says how many seconds', () => {
  const written = (text: string) => objectTtlMs({ 'node.alpha.kubernetes.io/ttl': text });
  assert.deepEqual(
    [objectTtlMs(), objectTtlMs({}), written('0'), written('300'), written('5s')],
    [60_000, 60_000, 0, 300_000, 60_000],
  );
});
