import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { apiError } from '../api/index.ts';
import type { ConfigMap } from '../kinds/index.ts';
import { collectLogs } from '../lib/index.ts';
import { podUid } from '../pods/index.ts';
import { CacheStore, objectTtlMs } from './cache-store.ts';

const { signal } = new AbortController();
const object = { namespace: 'ns', name: 'n' };
const [one, two] = [podUid('one'), podUid('two')];
const version = (resourceVersion: string): ConfigMap => ({ metadata: { resourceVersion } });
const refusal = (status: number) => apiError({ what: 'get configmaps/n', status, apiStatus: {} });

function createHarness() {
  const clock = new VirtualClock();
  const requests: string[] = [];
  const server: { answer: () => ConfigMap | Promise<ConfigMap>; ttlMs: number } = {
    answer: () => version('5'),
    ttlMs: 60_000,
  };
  const store = new CacheStore<ConfigMap>({
    clock,
    logger: collectLogs(clock).logger,
    ttlMs: () => server.ttlMs,
    fetch: async (_object, freshness) => {
      requests.push(freshness);
      return await server.answer();
    },
  });
  const read = async () => (await store.get(object, signal))?.metadata?.resourceVersion;
  const fails = (error: Error) => {
    server.answer = () => Promise.reject(error);
  };
  return { clock, asked: requests, server, store, read, fails };
}

test('rejects reading an object that no pod refers to', async () => {
  const { store, read } = createHarness();
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED', message: 'object "ns"/"n" not registered' });
  store.add(object, one);
  store.add(object, two);
  store.remove(object, one);
  assert.equal(await read(), '5');
  store.remove(object, two);
  await assert.rejects(read(), { code: 'OBJECT_NOT_REGISTERED' });
});

test('sends at most one request per TTL: the first for the latest version, later ones for any version that the API server has cached', async () => {
  const { clock, asked, store, read } = createHarness();
  store.add(object, one);
  await read();
  await clock.advance(59_999);
  await read();
  assert.deepEqual(asked, ['newest']);
  await clock.advance(1);
  await read();
  assert.deepEqual(asked, ['newest', 'any']);
});

test('follows a TTL that the cluster changes', async () => {
  const { clock, asked, server, store, read } = createHarness();
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

test('drops the cached object when another pod begins to refer to it, and keeps it when the same pod refers to it again', async () => {
  const { asked, store, read } = createHarness();
  store.add(object, one);
  await read();
  store.add(object, one);
  await read();
  assert.deepEqual(asked, ['newest']);
  store.add(object, two);
  await read();
  assert.deepEqual(asked, ['newest', 'newest']);
});

test('ignores a response to a request that was sent before a new reference', async () => {
  const { asked, server, store, read } = createHarness();
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

test('never replaces a newer version of an object with an older one', async () => {
  const { clock, asked, server, store, read } = createHarness();
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

test('serves the cached object when the API server fails, and retries at the next read', async () => {
  const { clock, asked, server, store, read, fails } = createHarness();
  store.add(object, one);
  await read();
  await clock.advance(60_000);
  fails(refusal(500));
  assert.equal(await read(), '5');
  server.answer = () => version('6');
  assert.equal(await read(), '6');
  assert.equal(asked.length, 3);
});

test('throws the error of the API server when no object is cached', async () => {
  const { store, read, fails } = createHarness();
  store.add(object, one);
  fails(refusal(403));
  await assert.rejects(read(), { code: 'API_FORBIDDEN' });
});

test('returns undefined for a missing object, and requests it again at each read', async () => {
  const { asked, server, store, read, fails } = createHarness();
  store.add(object, one);
  fails(refusal(404));
  assert.equal(await read(), undefined);
  fails(refusal(500));
  assert.equal(await read(), undefined);
  server.answer = () => version('7');
  assert.equal(await read(), '7');
  assert.deepEqual(asked, ['newest', 'newest', 'newest']);
});

test('serves a deleted object until its TTL ends', async () => {
  const { clock, store, read, fails } = createHarness();
  store.add(object, one);
  await read();
  fails(refusal(404));
  await clock.advance(60_000);
  assert.equal(await read(), undefined);
});

test('shares one request between concurrent readers', async () => {
  const { asked, store, read } = createHarness();
  store.add(object, one);
  assert.deepEqual(await Promise.all([read(), read(), read()]), ['5', '5', '5']);
  assert.equal(asked.length, 1);
});

test('defaults the TTL to a minute unless the Node annotation sets it', () => {
  const written = (text: string) => objectTtlMs({ 'node.alpha.kubernetes.io/ttl': text });
  assert.deepEqual(
    [objectTtlMs(), objectTtlMs({}), written('0'), written('300'), written('5s')],
    [60_000, 60_000, 0, 300_000, 60_000],
  );
});
