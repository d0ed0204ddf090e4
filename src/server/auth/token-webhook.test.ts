import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bearerProtocolPrefix } from '../../protocols/upgrade/index.ts';
import { headerToken, webSocketToken } from './token-webhook.ts';

test('reads the part after Bearer in the Authorization header as the token', () => {
  const of = (authorization: string) => headerToken({ authorization });
  for (const text of ['Bearer abc', 'bearer abc', '  Bearer abc  ', 'Bearer abc def']) {
    assert.deepEqual(of(text), { kind: 'token', token: 'abc' }, text);
  }
  for (const text of ['', 'Bearer', 'Bearer ', 'Bearer  abc', 'Basic abc', 'abc', 'BearerX abc']) {
    assert.deepEqual(of(text), { kind: 'none' }, text);
  }
  assert.deepEqual(headerToken({}), { kind: 'none' });
});

const token = (text: string) => `${bearerProtocolPrefix}${Buffer.from(text).toString('base64url')}`;
const offering = (...protocols: string[]) =>
  webSocketToken({ upgrade: 'websocket', 'sec-websocket-protocol': protocols.join(', ') });

test('reads a token offered as a WebSocket subprotocol', () => {
  assert.deepEqual(offering('v4.channel.k8s.io', token('abc')), { kind: 'token', token: 'abc' });
  assert.deepEqual(offering(token('ä'), 'v4.channel.k8s.io'), { kind: 'token', token: 'ä' });
  assert.deepEqual(offering('v4.channel.k8s.io'), { kind: 'none' });
  assert.deepEqual(webSocketToken({}), { kind: 'none' });
});

test('ignores a token among subprotocols when the request is no WebSocket upgrade', () => {
  const headers = { upgrade: 'SPDY/3.1', 'sec-websocket-protocol': `v4, ${token('abc')}` };
  assert.deepEqual(webSocketToken(headers), { kind: 'none' });
});

test('rejects a WebSocket token without another subprotocol, an empty token, two tokens, and a token that is no base64url or UTF-8', () => {
  const wrong = [
    offering(token('abc')),
    offering('v4', token('')),
    offering('v4', token('a'), token('b')),
    offering('v4', `${bearerProtocolPrefix}a=b`),
    offering('v4', `${bearerProtocolPrefix}${Buffer.of(0xff, 0xfe).toString('base64url')}`),
  ];
  assert.deepEqual(
    wrong.map(({ kind }) => kind),
    wrong.map(() => 'malformed'),
  );
});
