import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loopbackGate } from './loopback-token.ts';

const { signal } = new AbortController();

function admit(headers: Readonly<Record<string, string>>) {
  return loopbackGate('secret').admit(
    { method: 'GET', path: '/pods', headers, certificate: undefined },
    signal,
  );
}

test('who knows the token passes, by header and by WebSocket protocol', async () => {
  assert.equal(await admit({ authorization: 'Bearer secret' }), undefined);
  const offered = `v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from('secret').toString('base64url')}`;
  assert.equal(await admit({ 'sec-websocket-protocol': offered }), undefined);
});

test('nobody else passes', async () => {
  for (const authorization of ['', 'Bearer ', 'Bearer guess', 'Bearer secret2', 'Basic secret', 'secret']) {
    assert.equal((await admit({ authorization }))?.status, 401, authorization);
  }
  assert.equal((await admit({}))?.status, 401);
});
