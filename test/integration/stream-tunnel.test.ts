import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { KubelingError } from '../../src/lib/index.ts';
import { SpdyConnection } from '../../src/protocols/spdy/index.ts';
import { relay } from '../../src/protocols/upgrade/index.ts';
import { StreamingRig } from '../fakes/streaming-runtime.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import { until } from './containerd-fixture.ts';

const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
const target = '/exec/default/web/main?command=id&output=1';
const authorization = `Authorization: Bearer ${StreamingRig.token}`;

function ask(harness: StreamingRig, lines: readonly string[], behind = ''): Socket {
  const socket = harness.keep(connect({ port: harness.port, host: '127.0.0.1', allowHalfOpen: true }));
  socket.write(`${lines.join('\r\n')}\r\n\r\n${behind}`);
  return socket;
}

function upgrade(harness: StreamingRig, path = target, behind = '', method = 'POST'): Socket {
  const wish = ['Connection: Upgrade', 'Upgrade: SPDY/3.1'];
  return ask(harness, [`${method} ${path} HTTP/1.1`, 'Host: x', authorization, ...wish], behind);
}

/** Whether the peer has closed its connection. */
function isLeft(socket: Socket): boolean {
  return socket.readableEnded || socket.closed;
}

/** Reads the head of an HTTP response; the bytes after it stay in the socket. */
async function head(socket: Socket): Promise<string> {
  let observed = '';
  while (!observed.includes('\r\n\r\n')) observed += String((await once(socket, 'data'))[0]);
  return observed;
}

test("forwards an upgrade to the runtime with the runtime's path and without the client's credentials", async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness, target, 'early');
  assert.equal(await head(socket), switching);
  await until(() => String(harness.only.received) === 'early', 'the early bytes arrive');
  const lines = harness.only.head.split('\r\n');
  assert.equal(lines[0], 'POST /exec/once?x=1 HTTP/1.1');
  assert(lines.includes('X-Forwarded-For: 127.0.0.1'));
  assert.doesNotMatch(harness.only.head, /authorization|secret/i);
});

test('forwards bytes in both directions, and closes each direction separately', async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness, target, '', 'GET');
  await head(socket);
  socket.end('question');
  await until(() => harness.only.socket.readableEnded, 'the runtime receives the end');
  assert.equal(String(harness.only.received), 'question');
  const response = text(socket);
  harness.only.socket.write('answ');
  harness.only.socket.end('er');
  assert.equal(await response, 'answer');
});

test("reports the runtime's rejection of an upgrade to the client and closes both connections", async () => {
  const body = 'not for you';
  const refusal = `HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  await using harness = await StreamingRig.open(refusal);
  const socket = upgrade(harness);
  assert.match(await text(socket), /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*\r\n\r\nnot for you$/);
  await until(() => isLeft(harness.only.socket), 'the connection to the runtime is closed');
  // Bytes that the client sends after the rejection must not reach the runtime.
  socket.write('GET /secrets HTTP/1.1\r\nHost: runtime\r\n\r\n');
  await until(() => isLeft(socket), 'the client connection is closed');
  assert.equal(harness.only.received.length, 0);
});

test('reports a redirect by the runtime as an error, and does not follow or forward it', async () => {
  await using harness = await StreamingRig.open(
    'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/evil\r\nContent-Length: 0\r\n\r\n',
  );
  const response = await text(upgrade(harness));
  assert.match(response, /^HTTP\/1\.1 500 /);
  assert.match(response, /invalid upgrade response: status code 302$/);
  assert.doesNotMatch(response, /location/i);
  await until(() => isLeft(harness.only.socket), 'the connection to the runtime is closed');
});

test('reports a success response of the runtime without a protocol switch as an error', async () => {
  await using harness = await StreamingRig.open('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  assert.match(await text(upgrade(harness)), /status code 200$/);
});

test('reports a runtime that does not respond in HTTP as an error', async () => {
  await using harness = await StreamingRig.open('garbage\r\n\r\n');
  assert.match(await text(upgrade(harness)), /^HTTP\/1\.1 500 /);
});

test('disconnects from the runtime when the client disconnects', async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness);
  await head(socket);
  socket.resetAndDestroy();
  await until(() => isLeft(harness.only.socket), 'the runtime is disconnected');
});

test('detects that the client has disconnected while its input is not consumed', async (context) => {
  const clock = new VirtualClock();
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1' });
  client.on('error', () => {});
  const [accepted]: Socket[] = await once(server, 'connection');
  assert(accepted !== undefined);
  context.after(() => {
    accepted.destroy();
    server.close();
  });
  const deaf = new Duplex({ read() {}, write() {} });
  let isOver = false;
  const over = relay(accepted, deaf, { clock, idleMs: 0 }, new AbortController().signal).then(() => {
    isOver = true;
  });
  client.write(Buffer.alloc(1 << 20));
  await until(() => accepted.isPaused(), 'the buffers are full');
  await clock.advance(3_600_000);
  assert.equal(isOver, false, 'an idle client may stay connected');
  client.resetAndDestroy();
  await until(async () => {
    await clock.advance(5_000);
    return isOver;
  }, 'the disconnect is detected');
  await over;
  assert(deaf.destroyed && accepted.destroyed);
});

test('disconnects the client immediately when a session ends with unconsumed input', async (context) => {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1' });
  const [[accepted]]: [Socket[], unknown] = await Promise.all([
    once(server, 'connection'),
    once(socket, 'connect'),
  ]);
  context.after(() => {
    accepted?.destroy();
    server.close();
  });
  const connection = new SpdyConnection(socket, new Uint8Array(0));
  const stdin = connection.open({ streamType: 'stdin' });
  stdin.on('error', () => {});
  stdin.write(Buffer.alloc(32 << 20));
  await until(() => socket.writableLength > 0, 'the buffers are full');
  connection.close();
  let broken: unknown;
  accepted?.on('error', (error) => {
    broken = error;
  });
  await until(() => {
    // Writes until the write fails, without reading the received bytes.
    accepted?.write(new Uint8Array(0));
    return broken !== undefined;
  }, 'the peer is disconnected');
});

test('disconnects the client when the connection to the runtime breaks', async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness);
  await head(socket);
  harness.only.socket.resetAndDestroy();
  socket.resume();
  await until(() => isLeft(socket), 'the client is disconnected');
});

test('delivers the final output of the runtime while the client is still sending', async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness);
  await head(socket);
  const response = text(socket);
  harness.only.socket.end('x'.repeat(3_000_000));
  for (let count = 0; count < 50; count++) socket.write('still talking');
  assert.equal((await response).length, 3_000_000);
});

test('reads from the client and from the runtime no faster than the peer consumes', async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness);
  await head(socket);
  socket.pause();
  const { socket: runtime } = harness.only;
  const chunk = Buffer.alloc(1 << 20);
  let sent = 0;
  await until(() => {
    for (; sent < 200 && runtime.writableLength === 0; sent++) runtime.write(chunk);
    return runtime.writableLength > 0;
  }, 'the runtime is throttled');
  assert(sent < 100, `${sent} MiB were accepted`);
  let received = 0;
  socket.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  socket.resume();
  await until(() => received === sent * chunk.length, 'all of it arrives');
});

test('closes both connections of a stream after the idle timeout', async () => {
  await using harness = await StreamingRig.open(switching, { idleMs: 200 });
  const socket = upgrade(harness);
  await head(socket);
  socket.resume();
  await until(() => isLeft(socket), 'the client connection is closed');
  await until(() => isLeft(harness.only.socket), 'the connection to the runtime is closed');
});

test('ends streams when the server closes', async () => {
  await using harness = await StreamingRig.open(switching);
  const socket = upgrade(harness);
  await head(socket);
  socket.resume();
  await harness.closeServer();
  await until(() => isLeft(socket), 'the client connection is closed');
  await until(() => isLeft(harness.only.socket), 'the connection to the runtime is closed');
});

async function post(harness: StreamingRig, path: string, init: RequestInit = {}) {
  const headers = { authorization: `Bearer ${StreamingRig.token}` };
  const response = await fetch(`http://127.0.0.1:${harness.port}${path}`, {
    method: 'POST',
    headers,
    ...init,
  });
  return { status: response.status, body: await response.text(), retry: response.headers.get('retry-after') };
}

test('reports request errors with the messages that clients expect', async () => {
  await using harness = await StreamingRig.open(switching, {
    host: {
      attach: async () => {
        throw new KubelingError('STREAM_NO_CONTAINER', 'container not found ("main")');
      },
      portForward: async () => {
        throw new KubelingError('CRI_EXHAUSTED', 'too many streams');
      },
    },
  });
  const says = async (path: string) => {
    const { status, body } = await post(harness, path);
    return `${status} ${body}`;
  };
  assert.equal(
    await says('/exec/default/web/main'),
    '400 you must specify at least 1 of stdin, stdout, stderr',
  );
  assert.equal(await says('/exec/default/gone/main?output=1'), '404 pod does not exist');
  assert.equal(await says('/exec/default/web/other-uid/main?output=1'), '404 pod not found');
  assert.equal(await says('/exec/default/web/mirror/main?output=1'), '500 Upgrade request required');
  assert.equal(await says('/exec/default/web/main?output=1'), '500 Upgrade request required');
  assert.equal(await says('/attach/default/web/main?output=1'), '500 container not found ("main")');
  assert.equal(await says('/portForward/default/web/u2'), '404 pod not found');
  assert.deepEqual(await post(harness, '/portForward/default/web'), {
    status: 429,
    body: 'too many streams',
    retry: '60',
  });
  assert.equal(await says('/run/default/web/main?cmd=ls%20-l'), '200 ls|-l');
  assert.equal((await post(harness, '/exec/default/web/main?output=1', { method: 'PUT' })).status, 405);
});

test('rejects streams without a valid token, and upgrades with a body', async () => {
  await using harness = await StreamingRig.open(switching);
  const wish = ['Connection: Upgrade', 'Upgrade: SPDY/3.1'];
  const bare = await text(ask(harness, [`POST ${target} HTTP/1.1`, 'Host: x', ...wish]));
  assert.match(bare, /^HTTP\/1\.1 401 [\s\S]*Unauthorized$/);
  const wrong = await text(
    ask(harness, [`POST ${target} HTTP/1.1`, 'Host: x', 'Authorization: Bearer x', ...wish]),
  );
  assert.match(wrong, /^HTTP\/1\.1 401 /);
  assert.equal((await post(harness, '/run/default/web/main?cmd=id', { headers: {} })).status, 401);
  const body = ask(
    harness,
    [`POST ${target} HTTP/1.1`, 'Host: x', authorization, 'Content-Length: 5', ...wish],
    'hello',
  );
  assert.match(await text(body), /^HTTP\/1\.1 400 /);
  assert.equal(harness.calls.length, 0);
});

test('closes the WebSocket and the connection to the runtime when the client violates the protocol', async () => {
  await using harness = await StreamingRig.open(switching);
  const lines = [
    `GET ${target} HTTP/1.1`,
    'Host: x',
    authorization,
    'Connection: Upgrade',
    'Upgrade: websocket',
  ];
  const shake = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='];
  const socket = ask(harness, [...lines, ...shake, 'Sec-WebSocket-Protocol: v5.channel.k8s.io']);
  const response = await head(socket);
  assert.match(response, /^HTTP\/1\.1 101 /);
  assert.match(response, /Sec-WebSocket-Accept: ICX\+Yqv66kxgM0FcWaLWlFLwTAI=/);
  socket.write(Buffer.from([0x82, 0x01, 0x00]));
  socket.on('data', () => {});
  await until(() => isLeft(socket), 'the client connection is closed');
  socket.destroy();
  await until(() => isLeft(harness.only.socket), 'the connection to the runtime is closed');
});

test('rejects an unsupported WebSocket request before the runtime is called', async () => {
  await using harness = await StreamingRig.open(switching);
  const lines = [
    `GET ${target} HTTP/1.1`,
    'Host: x',
    authorization,
    'Connection: Upgrade',
    'Upgrade: websocket',
  ];
  const v5 = 'Sec-WebSocket-Protocol: v5.channel.k8s.io';
  const old = ask(harness, [
    ...lines,
    v5,
    'Sec-WebSocket-Version: 8',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ]);
  assert.match(await text(old), /^HTTP\/1\.1 426 /);
  const keyless = ask(harness, [...lines, v5, 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: short']);
  assert.match(await text(keyless), /^HTTP\/1\.1 400 /);
  assert.equal(harness.calls.length, 0);
});
