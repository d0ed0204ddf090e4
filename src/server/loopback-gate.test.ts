import assert from 'node:assert/strict';
import { test } from 'node:test';
import { healthRoutes } from './kubelet-routes.ts';
import { localGate, loopbackGate } from './loopback-gate.ts';

const { signal } = new AbortController();
const gate = loopbackGate({ token: 'secret', open: healthRoutes([]), names: ['node-1'] });
const token = { authorization: 'Bearer secret' };

async function statusOf(headers: Readonly<Record<string, string>>, path = '/pods', of = gate) {
  const { rejection } = await of.admit({ method: 'GET', path, headers, certificate: undefined }, signal);
  return rejection?.status;
}

test('admits a request with the token in a header or in a WebSocket subprotocol', async () => {
  assert.equal(await statusOf(token), undefined);
  const offered = `v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from('secret').toString('base64url')}`;
  assert.equal(await statusOf({ 'sec-websocket-protocol': offered }), undefined);
});

test('rejects a request with any credential other than the token', async () => {
  for (const authorization of ['', 'Bearer ', 'Bearer guess', 'Bearer secret2', 'Basic secret', 'secret']) {
    assert.equal(await statusOf({ authorization }), 401, authorization);
  }
  assert.equal(await statusOf({}), 401);
});

test('serves health endpoints without the token, but no path that only resembles them', async () => {
  for (const path of ['/healthz', '/healthz/ping', '/livez', '/livez/log', '/readyz', '/readyz/x'])
    assert.equal(await statusOf({}, path), undefined, path);
  for (const path of [
    '/',
    '/healthzz',
    '//healthz',
    '/metrics',
    '/debug/flight',
    '/runningpods/',
    '/healthz%2f',
  ])
    assert.equal(await statusOf({}, path), 401, path);
});

test('rejects a Host header that does not name the node, even for health endpoints and with the token', async () => {
  for (const host of [
    '127.0.0.1',
    '127.0.0.1:10250',
    '127.1.2.3:1',
    '[::1]:10250',
    'localhost',
    'LOCALHOST:1',
    'node-1:1',
  ]) {
    assert.equal(await statusOf({ ...token, host }), undefined, host);
    assert.equal(await statusOf({ host }, '/healthz', localGate(['node-1'])), undefined, host);
  }
  const foreign = [
    'evil.example',
    'evil.example:10250',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '',
    ' ',
    '[',
    '10.0.0.1',
    'node-2',
    '127.0.0.1@evil.example',
  ];
  for (const host of foreign) {
    assert.equal(await statusOf({ ...token, host }), 403, host);
    assert.equal(await statusOf({ host }, '/healthz'), 403, host);
    assert.equal(await statusOf({ host }, '/healthz', localGate(['node-1'])), 403, host);
  }
});

test('rejects an Origin header that differs from the requested address', async () => {
  const host = '127.0.0.1:10250';
  assert.equal(await statusOf({ ...token, host, origin: `http://${host}` }), undefined);
  for (const origin of [
    'http://evil.example',
    'null',
    'http://127.0.0.1:8080',
    'http://localhost:10250',
    '',
  ]) {
    assert.equal(await statusOf({ ...token, host, origin }), 403, origin);
    assert.equal(await statusOf({ host, origin }, '/healthz'), 403, origin);
  }
});
