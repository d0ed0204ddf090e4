import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { apiResources } from '../../src/api/index.ts';
import { cancelledError, isKind, KubelingError } from '../../src/lib/index.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import {
  Authority,
  clientFor,
  type Issued,
  never,
  respondJson,
  TestServer,
  until,
  writeKubeconfig,
} from './api-fixture.ts';

const pods = { resource: apiResources.pods, timeoutSeconds: 300, begin: 'at-version' } as const;
const web = { resource: apiResources.pods, name: 'web', namespace: 'a' };
const pod = { metadata: { name: 'web', resourceVersion: '5' } };
const line = `${JSON.stringify({ type: 'ADDED', object: pod })}\n`;

let authority: Authority;
let serving: Issued;
let configs = 0;

before(async () => {
  authority = await Authority.create();
  serving = await authority.issue({ subject: '/CN=server', names: 'IP:127.0.0.1' });
});
after(() => authority[Symbol.asyncDispose]());

type Answers = Set<ServerResponse>;

/** Starts a server whose watches stay open until the test ends them. */
function serve(responses: Answers, other?: (request: IncomingMessage, response: ServerResponse) => void) {
  const options = { cert: serving.cert, key: serving.key, http2: 'offered' } as const;
  return TestServer.start(options, (request, response) => {
    if (!request.url?.includes('watch')) return respondJson(response, pod);
    if (other !== undefined) return other(request, response);
    responses.add(response);
    response.on('close', () => responses.delete(response));
    response.writeHead(200).write(line);
  });
}

function config(server: TestServer): Promise<string> {
  const path = join(authority.directory, `kubeconfig-${++configs}`);
  return writeKubeconfig(path, { server: server.url, cluster: { 'certificate-authority': 'ca.crt' } });
}

type Client = ReturnType<typeof clientFor>;

/** Starts a watch and waits for its first event. */
async function watching(client: Client, signal = never()) {
  const events = client.watch(pods, signal)[Symbol.asyncIterator]();
  assert.deepEqual((await events.next()).value, { type: 'ADDED', object: pod });
  return events;
}

function watchingMany(client: Client, count: number) {
  return Promise.all(Array.from({ length: count }, () => watching(client)));
}

describe('API watches over HTTP/2', () => {
  test('up to a hundred watches share one HTTP/2 connection, and requests other than watches use HTTP/1.1 connections', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    using client = clientFor(await config(server));
    const watches = await watchingMany(client, 150);
    assert.deepEqual(await client.get(web, {}, never()), pod);
    assert.equal(server.sessions.size, 2);
    assert.equal(server.connections, 3);
    for (const response of responses) response.write(line);
    for (const watch of watches) assert.equal((await watch.next()).done, false);
    for (const response of responses) response.end();
    for (const watch of watches) assert.equal((await watch.next()).done, true);
    await watchingMany(client, 100);
    assert.equal(server.connections, 3, 'existing connections accept more watches when others have ended');
  });

  test('an aborted watch closes only its own stream', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    using client = clientFor(await config(server));
    const controller = new AbortController();
    const [kept, given] = [await watching(client), await watching(client, controller.signal)];
    await until(() => responses.size === 2);
    controller.abort(cancelledError('enough'));
    await assert.rejects(given.next(), (error) => isKind(error, 'Cancelled'));
    await until(() => responses.size === 1);
    for (const response of responses) response.write(line);
    assert.equal((await kept.next()).done, false);
    await kept.return?.();
    await until(() => responses.size === 0);
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    assert.equal(server.connections, 1);
  });

  test('watches end when their connection breaks, and restart on another one', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    using client = clientFor(await config(server));
    const watches = await watchingMany(client, 10);
    server.cutAll();
    for (const watch of watches)
      await watch.next().catch((error) => assert.ok(error instanceof KubelingError));
    await watchingMany(client, 10);
    assert.equal(server.connections, 2);
  });

  test('watches continue on a connection that received GOAWAY, and new watches use another one', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    using client = clientFor(await config(server));
    const [old] = await watchingMany(client, 1);
    const [first] = responses;
    for (const session of server.sessions) session.goaway();
    await until(() => server.sessions.size === 1);
    await eventuallyNewConnection(client, server);
    first?.write(line);
    assert.equal((await old?.next())?.done, false);
  });

  test('watches report the error of the server, and a connection lost before the response', async () => {
    const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
    const says: ((response: ServerResponse) => void)[] = [
      (response) => respondJson(response, status, 410),
      (response) => response.destroy(),
      (response) => response.writeHead(200).end(line),
    ];
    await using server = await serve(new Set(), (_request, response) => says.shift()?.(response));
    using client = clientFor(await config(server));
    await assert.rejects(
      watching(client),
      (error) => error instanceof KubelingError && error.code === 'API_GONE',
    );
    // A read-only request may be retried when its connection breaks.
    await watching(client);
    assert.equal(says.length, 0);
  });

  test('watches are not blocked by another watch that is not consumed', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    using client = clientFor(await config(server));
    const unread = await watching(client);
    const [flooded] = responses;
    const flood = line.repeat(1_000);
    for (let each = 0; each < 100; each++) flooded?.write(flood);
    const read = await watching(client);
    assert.equal(server.connections, 1);
    await unread.return?.();
    await read.return?.();
  });

  test('an unresponsive watch ends when the client closes silent connections, and the next watch uses another connection', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    using client = clientFor(await config(server));
    await watching(client);
    client.closeSilent();
    await watching(client);
    assert.equal(server.connections, 2);
  });

  test('connections ping the server after 30 seconds without data and wait 15 seconds for the reply', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    const clock = new VirtualClock();
    using client = clientFor(await config(server), { clock });
    let pings = 0;
    const watch = await watching(client);
    for (const session of server.sessions) session.on('ping', () => pings++);
    await clock.advance(60_000);
    await until(() => pings === 1);
    for (const response of responses) response.write(line);
    assert.equal((await watch.next()).done, false);
    await clock.advance(30_000);
    assert.equal(pings, 1, 'an active connection is not pinged');
    for (const socket of server.sockets) socket.pause();
    await clock.advance(30_000);
    await clock.advance(15_000);
    await watch.next().catch((error) => assert.ok(error instanceof KubelingError));
    await watching(client);
    assert.equal(server.connections, 2);
  });

  test('a connection that the client closes is cut when the server does not close its side', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    const clock = new VirtualClock();
    using client = clientFor(await config(server), { clock });
    const watch = await watching(client);
    for (const socket of server.sockets) socket.pause();
    await watch.return?.();
    client.closeSilent();
    await clock.advance(60_000);
    await watching(client);
    assert.equal(server.connections, 2);
    assert.equal(clock.pendingTimers > 0, true, 'the new watch receives events');
  });

  test('watches do not use HTTP/2 with DISABLE_HTTP2, or after the client was closed', async () => {
    const responses: Answers = new Set();
    await using server = await serve(responses);
    const path = await config(server);
    {
      using client = clientFor(path, { environment: { DISABLE_HTTP2: 'true' } });
      await watchingMany(client, 3);
      assert.equal(server.sessions.size, 0);
      assert.equal(server.connections, 3);
    }
    using client = clientFor(path);
    await watchingMany(client, 3);
    client.close();
    await until(() => server.sockets.size === 0);
    await assert.rejects(watching(client), (error) => isKind(error, 'Cancelled'));
  });
});

/** The GOAWAY frame may take a moment to arrive. */
async function eventuallyNewConnection(client: Client, server: TestServer): Promise<void> {
  for (let each = 0; each < 100 && server.connections < 2; each++) {
    await watching(client);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(server.connections, 2);
}
