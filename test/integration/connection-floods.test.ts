import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import { frameOf, frameType, preface, settingsFrame } from '../../src/protocols/http2/frames.ts';
import { encodeHeaders } from '../../src/protocols/http2/index.ts';
import { healthRoutes, Listener, loopbackGate, type Route } from '../../src/server/index.ts';
import { FrontRig } from '../fakes/api-front.ts';
import type { KeyPair } from '../fakes/certificate-authority.ts';
import { call, TlsNode } from '../fakes/tls-node.ts';
import { until } from '../fakes/until.ts';

const host = '127.0.0.1';
const bearer = 'Authorization: Bearer secret\r\n';
let started = 0;

const slow: Route = {
  path: '/slow',
  methods: ['GET'],
  async answer(_request, signal) {
    started++;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return { status: 200, contentType: 'text/plain', body: '' };
  },
};

async function openListener(connections: { anonymous: number; unprivileged: number }): Promise<Listener> {
  const open = [...healthRoutes([]), slow];
  const gate = loopbackGate({ token: 'secret', open, names: [] });
  const { logger } = collectLogs(realClock());
  return await Listener.open({ host, port: 0, routes: open, logger, gate, connections });
}

/** Resolves when the connection is closed, also by a reset. */
function closedOf(socket: Socket): Promise<undefined> {
  return new Promise((resolve) => void socket.once('close', () => resolve(undefined)));
}

/** The connections of one client, which are closed at the end of the test. */
class Client implements Disposable {
  readonly sockets: Socket[] = [];

  async keep<S extends Socket>(socket: S, ready: string): Promise<S> {
    socket.on('error', () => {});
    this.sockets.push(socket);
    await once(socket, ready);
    return socket.resume();
  }

  get stillOpen(): readonly number[] {
    return this.sockets.flatMap((socket, at) => (socket.closed ? [] : [at]));
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

test('closes the oldest anonymous connection above the limit, and none that has authenticated with a token', async () => {
  await using listener = await openListener({ anonymous: 4, unprivileged: 4 });
  using trusted = new Client();
  using anonymous = new Client();
  for (let count = 0; count < 6; count++) {
    const socket = await trusted.keep(connect(listener.port, host), 'connect');
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\n${bearer}\r\n`);
    await once(socket, 'data');
  }
  for (let count = 0; count < 10; count++) {
    const socket = await anonymous.keep(connect(listener.port, host), 'connect');
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nX-Unfinished: `);
  }
  await until('the oldest to be closed', () => anonymous.stillOpen.length === 4);
  assert.deepEqual(anonymous.stillOpen, [6, 7, 8, 9]);
  assert.equal(trusted.stillOpen.length, 6);
});

test('closes a connection with more than eight unanswered requests, and aborts those that have started', async () => {
  await using listener = await openListener({ anonymous: 10, unprivileged: 10 });
  using client = new Client();
  started = 0;
  const eight = await client.keep(connect(listener.port, host), 'connect');
  eight.write(`GET /slow HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(8));
  await until('the requests to be started', () => started === 8);
  const flood = await client.keep(connect(listener.port, host), 'connect');
  const closed = closedOf(flood);
  flood.write(`GET /slow HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(1_000));
  await closed;
  assert.ok(started <= 16, `${started} were started`);
  assert.deepEqual(client.stillOpen, [0]);
});

test('the embedded API closes a connection with a flood of pipelined requests', async () => {
  await using harness = await FrontRig.open();
  using client = new Client();
  const socket = connectTls({ port: harness.port, host, rejectUnauthorized: false });
  const closed = closedOf(await client.keep(socket, 'secureConnect'));
  let received = 0;
  socket.on('data', (chunk: Buffer) => (received += chunk.length));
  for (let count = 0; count < 20 && socket.writable; count++)
    socket.write(`GET /api/v1/pods HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(200));
  await closed;
  assert.ok(received < 10_000, `${received} bytes were received`);
  assert.equal((await harness.ask('/healthz')).text, 'ok');
});

describe('limits on connections of the kubelet API', () => {
  let node: TlsNode;
  let alice: KeyPair;

  before(async () => {
    node = await TlsNode.open();
    alice = node.authority.issue({ subject: '/O=team/CN=alice' });
  });
  after(() => node[Symbol.asyncDispose]());

  const openTls = async (client: Client, protocol: string, pair?: KeyPair): Promise<TLSSocket> => {
    const options = { port: node.port, host, rejectUnauthorized: false, ALPNProtocols: [protocol] };
    return await client.keep(connectTls({ ...options, ...pair }), 'secureConnect');
  };

  test('closes the connection of a client without credentials after its 401', async () => {
    using client = new Client();
    const socket = await openTls(client, 'http/1.1');
    const closed = closedOf(socket);
    socket.write(`GET /pods HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const [response] = await once(socket, 'data');
    assert.match(String(response), /^HTTP\/1\.1 401 (?:.|\s)*connection: close/i);
    await closed;
  });

  test('accepts a request target of 500 KB from a client with a certificate, and of 100 KB from a client without one', async () => {
    const statusOf = async (bytes: number, pair?: KeyPair) => {
      using client = new Client();
      const socket = await openTls(client, 'http/1.1', pair);
      const target = `/healthz?command=${'x'.repeat(bytes)}`;
      const token = pair === undefined ? 'Authorization: Bearer token-of-alice\r\n' : '';
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${token}\r\n`);
      const [response] = (await Promise.race([once(socket, 'data'), closedOf(socket)])) ?? [''];
      return String(response).split(' ')[1];
    };
    assert.equal(await statusOf(500_000, alice), '200');
    assert.equal(await statusOf(100_000), '200');
    assert.notEqual(await statusOf(140_000), '200');
  });

  test('ends an HTTP/2 connection without credentials after 50 reset requests', async () => {
    using client = new Client();
    const socket = await openTls(client, 'h2');
    const closed = closedOf(socket);
    const fields = { ':method': 'GET', ':scheme': 'https', ':authority': host, ':path': '/pods' };
    const { bytes } = encodeHeaders(Object.entries(fields));
    const reset = (id: number) => frameOf(frameType.reset, 0, id, Buffer.from([0, 0, 0, 8]));
    const requests = Array.from({ length: 300 }, (_, at) => 2 * at + 1);
    const before = node.tokensAsked.length;
    socket.write(
      Buffer.concat([
        preface,
        settingsFrame([]),
        ...requests.flatMap((id) => [frameOf(frameType.headers, 0x5, id, bytes), reset(id)]),
      ]),
    );
    await closed;
    assert.equal(node.tokensAsked.length, before);
    assert.equal((await call(node, '/pods', alice)).status, 200);
  });
});
