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

test('matches one decoded segment per name in braces', () => {
  assert.deepEqual(params('/exec/default/web/main'), { namespace: 'default', pod: 'web', container: 'main' });
  assert.deepEqual(params('/exec/a/b/c/d'), { namespace: 'a', pod: 'b', uid: 'c', container: 'd' });
  assert.deepEqual(params('/exec/a/b%2Fx/c'), { namespace: 'a', pod: 'b/x', container: 'c' });
});

test('matches no empty, undecodable or additional segment', () => {
  assert.equal(params('/exec/default//main'), 404);
  assert.equal(params('/exec/default/%E0%A4%A/main'), 404);
  assert.equal(params('/exec/a/b'), 404);
  assert.equal(params('/exec/a/b/c/d/e'), 404);
});

test('matches everything below a path with a trailing slash', () => {
  assert.deepEqual(params('/healthz'), {});
  assert.deepEqual(params('/healthz/ping'), {});
  assert.equal(params('/podsx'), 404);
  assert.equal(params('/Pods'), 404);
});

test('answers a wrong method of a known path with 405', () => {
  assert.equal(params('/pods', 'DELETE'), 405);
  assert.equal(params('/exec/a/b/c', 'PUT'), 405);
});
