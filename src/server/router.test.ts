import assert from 'node:assert/strict';
import { test } from 'node:test';
import { choose } from './router.ts';

const routes = [
  { path: '/pods', methods: ['GET'] },
  { path: '/healthz/', methods: 'any' as const },
  { path: '/exec/{namespace}/{pod}/{container}', methods: ['GET', 'POST'] },
  { path: '/exec/{namespace}/{pod}/{uid}/{container}', methods: ['GET', 'POST'] },
];

function params(path: string, method = 'GET') {
  const choice = choose(routes, method, path);
  return choice.kind === 'found' ? choice.params : choice.response.status;
}

test('a name in braces matches one path segment, which is decoded', () => {
  assert.deepEqual(params('/exec/default/web/main'), { namespace: 'default', pod: 'web', container: 'main' });
  assert.deepEqual(params('/exec/a/b/c/d'), { namespace: 'a', pod: 'b', uid: 'c', container: 'd' });
  assert.deepEqual(params('/exec/a/b%2Fx/c'), { namespace: 'a', pod: 'b/x', container: 'c' });
});

test('a name in braces matches neither an empty nor an undecodable segment, and a longer path does not match the route', () => {
  assert.equal(params('/exec/default//main'), 404);
  assert.equal(params('/exec/default/%E0%A4%A/main'), 404);
  assert.equal(params('/exec/a/b'), 404);
  assert.equal(params('/exec/a/b/c/d/e'), 404);
});

test('a route with a trailing slash matches all paths below it', () => {
  assert.deepEqual(params('/healthz'), {});
  assert.deepEqual(params('/healthz/ping'), {});
  assert.equal(params('/podsx'), 404);
  assert.equal(params('/Pods'), 404);
});

test('responds with 405 to a wrong method on a known path', () => {
  assert.equal(params('/pods', 'DELETE'), 405);
  assert.equal(params('/exec/a/b/c', 'PUT'), 405);
});
