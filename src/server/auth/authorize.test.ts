import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeAccess } from './authorize.ts';

function parts(path: string): string {
  return nodeAccess('GET', path).subresources.join(' ');
}

test('maps each request path to a subresource of the node, plus the generic `proxy` where that is allowed', () => {
  const table: Readonly<Record<string, string>> = {
    '/healthz': 'healthz proxy',
    '/healthz/syncloop': 'healthz proxy',
    '/pods': 'pods proxy',
    '/runningpods/': 'pods proxy',
    '/stats/summary': 'stats',
    '/metrics': 'metrics',
    '/metrics/cadvisor': 'metrics',
    '/metrics/slis': 'metrics',
    '/containerLogs/a/b/c': 'proxy',
    '/exec/a/b/c': 'proxy',
    '/attach/a/b/c': 'proxy',
    '/portForward/a/b': 'proxy',
    '/run/a/b/c': 'proxy',
    '/logs/': 'log',
    '/logs/syslog': 'log',
    '/configz': 'configz proxy',
    '/checkpoint/a/b/c': 'checkpoint',
    '/debug/flags/v': 'proxy',
    '/debug/pprof/heap': 'proxy',
    '/statusz': 'statusz',
    '/flagz': 'configz',
    '/': 'proxy',
    '': 'proxy',
  };
  for (const [path, expected] of Object.entries(table)) assert.equal(parts(path), expected, path);
});

test('compares path prefixes by whole segments, case-sensitively', () => {
  for (const path of [
    '/podsx',
    '/Pods',
    '/metricsx/y',
    '/logsx',
    '/healthzz',
    '//pods',
    '/x/pods',
    '/%70ods',
  ]) {
    assert.equal(parts(path), 'proxy', path);
  }
});

test('maps HTTP methods to verbs, and unknown methods to no verb', () => {
  const verb = (method: string) => nodeAccess(method, '/pods').verb;
  assert.deepEqual(['POST', 'GET', 'PUT', 'PATCH', 'DELETE'].map(verb), [
    'create',
    'get',
    'update',
    'patch',
    'delete',
  ]);
  assert.deepEqual(['HEAD', 'OPTIONS', 'CONNECT', 'get', 'toString', '__proto__'].map(verb), [
    '',
    '',
    '',
    '',
    '',
    '',
  ]);
});

test('requires the verb create for running a process in a pod, with any HTTP method', () => {
  for (const path of ['/exec/a/b/c', '/attach/a/b/c', '/portForward/a/b', '/run/a/b/c']) {
    for (const method of ['GET', 'POST', 'PUT']) assert.equal(nodeAccess(method, path).verb, 'create', path);
    assert.equal(nodeAccess('GET', path, 'by-method').verb, 'get');
  }
  assert.equal(nodeAccess('GET', '/containerLogs/a/b/c').verb, 'get');
  assert.equal(nodeAccess('GET', '/executive').verb, 'get');
});
