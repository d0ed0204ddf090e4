import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { type ClientRequest, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { sendRequest, sendWithConnectDeadline } from './request.ts';

const headers = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1' };

async function backend() {
  const server = createServer((incoming, response) => {
    if (incoming.url !== '/slow') response.writeHead(403).end('no');
  });
  server.on('upgrade', (_incoming, socket) => {
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nfirst');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    get: (path: string, more = {}) => request({ host: '127.0.0.1', port, path, agent: false, ...more }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

test('resolves with a granted upgrade and removes its listener from the signal', async () => {
  await using server = await backend();
  const { signal } = new AbortController();
  const response = await sendRequest(server.get('/', { headers }), undefined, signal);
  assert.equal(response.kind, 'upgraded');
  if (response.kind === 'upgraded') response.socket.destroy();
  assert.equal(listeners(signal), 0);
});

test('resolves with the response of a backend that rejects the upgrade', async () => {
  await using server = await backend();
  const { signal } = new AbortController();
  const requested = server.get('/denied');
  const response = await sendWithConnectDeadline(
    requested,
    undefined,
    { clock: new VirtualClock(), ms: 1000 },
    signal,
  );
  assert.equal(response.kind === 'answered' && response.response.statusCode, 403);
  requested.destroy();
  assert.equal(listeners(signal), 0);
});

test('destroys the request and removes its listener when the signal is aborted before the response', async () => {
  await using server = await backend();
  const controller = new AbortController();
  const requested = server.get('/slow');
  const response = sendRequest(requested, undefined, controller.signal);
  await once(requested, 'finish');
  controller.abort(new Error('the client disconnected'));
  await assert.rejects(response, /the client disconnected/);
  assert.equal(requested.destroyed, true);
  assert.equal(listeners(controller.signal), 0);
});

test('destroys the request when the connection is not established within the deadline', async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const asked: ClientRequest = request({
    host: '127.0.0.1',
    port: 9,
    // The factory returns no socket, so that the request never connects.
    createConnection: () => undefined,
  });
  const response = sendWithConnectDeadline(asked, undefined, { clock, ms: 1000 }, signal);
  const failed = assert.rejects(response, /Cannot connect within 1000 ms/);
  await clock.advance(1000);
  await failed;
  assert.equal(asked.destroyed, true);
  assert.equal(listeners(signal), 0);
});
