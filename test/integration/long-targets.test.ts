import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import { healthRoutes, Listener, loopbackGate, type Route } from '../../src/server/index.ts';
import { FrontRig } from '../fakes/api-front.ts';

const host = '127.0.0.1';
const token = 'secret';
/**
 * Request targets within the limit for headers and above the limit for targets of anonymous
 * callers.
 */
const longQuery = 'a&'.repeat(50_000);
const longPath = `/${'a/'.repeat(10_000)}`;

const echo: Route = {
  path: '/echo',
  methods: ['GET'],
  answer: ({ query }) => ({ status: 200, contentType: 'text/plain', body: String(query.getAll('a').length) }),
};

async function openListener(): Promise<Listener> {
  const health = healthRoutes([]);
  const gate = loopbackGate({ token, open: health, names: [] });
  const { logger } = collectLogs(realClock());
  return await Listener.open({ host, port: 0, routes: [...health, echo], logger, gate });
}

/** Sends one request on a new connection and resolves with the status and body of the response. */
async function send(socket: Socket, target: string, bearer = '', headers = ''): Promise<string> {
  const authorization = bearer === '' ? '' : `Authorization: Bearer ${bearer}\r\n`;
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${authorization}${headers}\r\n`,
  );
  const response = await text(socket);
  return `${response.split(' ')[1]} ${response.split('\r\n\r\n')[1]}`;
}

test('rejects a long request target of a caller without credentials with 414 before authentication', async () => {
  await using listener = await openListener();
  const get = (target: string, bearer?: string) => send(connect(listener.port, host), target, bearer);
  assert.equal(await get(`/healthz?${longQuery}`), '414 414: URI Too Long');
  assert.equal(await get(`/echo?${longQuery}`), '414 414: URI Too Long');
  assert.equal(await get(`/echo?${longQuery}`, 'guess'), '401 Unauthorized');
  assert.equal(await get(`/echo?${longQuery}`, token), '200 50000');
  assert.match(await get(longPath, token), /^414/);
  assert.equal(await get('/healthz?verbose'), '200 \nhealthz check passed\n');
});

test('rejects a long target of an upgrade request without credentials', async () => {
  await using listener = await openListener();
  const upgrade = 'Upgrade: websocket\r\n';
  assert.match(await send(connect(listener.port, host), `/echo?${longQuery}`, '', upgrade), /^414/);
});

test('the embedded API rejects a long target of an anonymous caller with 414, and serves it with a token', async () => {
  await using harness = await FrontRig.open();
  const pods = '/api/v1/namespaces/a/pods';
  const open = () => connectTls({ port: harness.port, host, rejectUnauthorized: false });
  for (const target of [`/healthz?${longQuery}`, `${pods}?${longQuery}`, `${pods}/x/exec?${longQuery}`])
    assert.match(await send(open(), target), /^414 .*must have at most 65536 characters/);
  assert.match(await send(open(), `${pods}?${longQuery}`, 'guess'), /^401/);
  assert.match(await send(open(), `${pods}?${longQuery}`, 'admin'), /^200/);
  assert.equal(harness.api.last.query.getAll('a').length, 50_000);
});
