import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forwardedHeaders, switchingProtocolsHead } from './headers.ts';

test('forwards request headers in their order and case', () => {
  const headers = [
    'Connection',
    'Upgrade',
    'upgrade',
    'SPDY/3.1',
    'X-Stream-Protocol-Version',
    'v4.channel.k8s.io',
  ];
  assert.deepEqual(forwardedHeaders(headers), headers);
});

test('drops the headers for credentials, impersonation, front-proxy identities and bodies, in upper and in lower case', () => {
  const dropped = [
    'Authorization',
    'COOKIE',
    'Host',
    'content-length',
    'Transfer-Encoding',
    'Impersonate-User',
    'impersonate-extra-scopes',
    'X-Remote-User',
    'x-remote-group',
    'X-Remote-Extra-Scopes',
  ];
  const headers = [...dropped.flatMap((name) => [name, 'secret']), 'Accept', '*/*'];
  assert.deepEqual(forwardedHeaders(headers), ['Accept', '*/*']);
});

test('drops the bearer token from the offered WebSocket subprotocols', () => {
  const bearer = 'base64url.bearer.authorization.k8s.io.c2VjcmV0';
  assert.deepEqual(
    forwardedHeaders(['Sec-WebSocket-Protocol', `${bearer}, v5.channel.k8s.io,v4.channel.k8s.io`]),
    ['Sec-WebSocket-Protocol', 'v5.channel.k8s.io, v4.channel.k8s.io'],
  );
  assert.deepEqual(forwardedHeaders(['Sec-WebSocket-Protocol', bearer]), []);
});

test('writes the response head of a granted upgrade', () => {
  assert.equal(
    switchingProtocolsHead(['Upgrade', 'SPDY/3.1', 'Connection', 'Upgrade']),
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n',
  );
});
