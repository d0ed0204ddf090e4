import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { FrontRig } from '../fakes/api-front.ts';
import { until } from '../fakes/until.ts';

const host = '127.0.0.1';

/** The open connections of one client; they send nothing until the test requests it. */
class Held implements Disposable {
  readonly sockets: Socket[] = [];
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Opens a TLS connection; resolves after the handshake. */
  async open(): Promise<Socket> {
    const socket = connect({ host, port: this.#port, rejectUnauthorized: false });
    await this.#keep(socket, 'secureConnect');
    return socket;
  }

  /** Opens a TCP connection that never starts a TLS handshake. */
  async openSilent(): Promise<void> {
    await this.#keep(connectPlain({ host, port: this.#port }), 'connect');
  }

  /** Sends a request with a bearer token; resolves with the response status. */
  async ask(token: string, path: string): Promise<string> {
    const socket = await this.open();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
    const [chunk] = await once(socket, 'data');
    return String(chunk).split(' ')[1] ?? '';
  }

  /** The numbers of the connections that are still open, in the order they were opened. */
  get stillOpen(): readonly number[] {
    return this.sockets.flatMap((socket, at) => (socket.closed ? [] : [at]));
  }

  async #keep(socket: Socket, ready: string): Promise<void> {
    this.sockets.push(socket);
    await once(socket, ready);
    socket.on('error', () => {});
    socket.resume();
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

test('closes the oldest unauthenticated connections at the limit and still accepts new clients', async () => {
  await using harness = await FrontRig.open({ deps: { connections: { anonymous: 4 } } });
  using held = new Held(harness.port);
  await held.openSilent();
  for (let count = 0; count < 5; count++) await held.open();
  await until('the oldest to be closed', () => held.stillOpen.length === 4);
  assert.deepEqual(held.stillOpen, [2, 3, 4, 5]);
  assert.equal((await harness.ask('/api/v1/pods')).status, 200);
  assert.equal((await harness.ask('/healthz', { token: '' })).status, 200);
});

test('limits anonymous and low-privilege connections separately and closes no connection of administrators', async () => {
  await using harness = await FrontRig.open({ deps: { connections: { anonymous: 3, unprivileged: 5 } } });
  using trusted = new Held(harness.port);
  for (let count = 0; count < 8; count++) assert.equal(await trusted.ask('admin', '/api/v1/pods'), '200');
  using guests = new Held(harness.port);
  for (let count = 0; count < 7; count++) assert.equal(await guests.ask('nobody', '/metrics'), '403');
  using strangers = new Held(harness.port);
  for (let count = 0; count < 7; count++) await strangers.open();
  await until('unauthenticated connections to be closed', () => strangers.stillOpen.length === 3);
  await until('low-privilege connections to be closed', () => guests.stillOpen.length === 5);
  assert.deepEqual(guests.stillOpen, [2, 3, 4, 5, 6]);
  assert.equal(trusted.stillOpen.length, 8);
});

test('closes the connection of a client with a bad credential after its response', async () => {
  await using harness = await FrontRig.open({ deps: { connections: { anonymous: 2 } } });
  using held = new Held(harness.port);
  for (let count = 0; count < 4; count++) assert.equal(await held.ask('made-up', '/api/v1/pods'), '401');
  await until('the connections to be closed', () => held.stillOpen.length === 0);
});
