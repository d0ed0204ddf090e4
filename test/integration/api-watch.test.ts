import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { apiResources, createApiClients, hostApiFiles, loadKubeconfig } from '../../src/api/index.ts';
import { collectLogs, KubelingError, realClock } from '../../src/lib/index.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import {
  Authority,
  clientFor,
  countingClock,
  type Issued,
  never,
  respondJson,
  TestServer,
  until,
  writeKubeconfig,
} from './api-fixture.ts';

const pods = { resource: apiResources.pods, timeoutSeconds: 300, begin: 'at-version' } as const;
const pod = { metadata: { name: 'web', resourceVersion: '5' } };

let authority: Authority;
let serving: Issued;
let configs = 0;

before(async () => {
  authority = await Authority.create();
  serving = await authority.issue({ subject: '/CN=server', names: 'IP:127.0.0.1,DNS:api.test' });
});
after(() => authority[Symbol.asyncDispose]());

function serve(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<TestServer> {
  return TestServer.start({ cert: serving.cert, key: serving.key }, handle);
}

function config(server: string, cluster: Record<string, unknown> = {}): Promise<string> {
  const path = join(authority.directory, `kubeconfig-${++configs}`);
  return writeKubeconfig(path, { server, cluster: { 'certificate-authority': 'ca.crt', ...cluster } });
}

function event(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function isCode(code: string) {
  return (error: unknown) => {
    assert(error instanceof KubelingError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  };
}

describe('API watches over TLS', () => {
  test('delivers events one by one for any chunking and reuses the connection when the server ends the watch', async () => {
    const requests: (string | undefined)[] = [];
    const text = event('ADDED', { ...pod, note: 'grün €😀' }) + event('DELETED', pod);
    await using server = await serve((request, response) => {
      requests.push(request.url);
      if (!request.url?.includes('watch')) return respondJson(response, pod);
      response.writeHead(200);
      const bytes = [...Buffer.from(text)];
      const next = () => {
        const byte = bytes.shift();
        if (byte === undefined) response.end();
        else response.write(Buffer.from([byte]), () => setImmediate(next));
      };
      next();
    });
    using client = clientFor(await config(server.url));
    const observed: unknown[] = [];
    const query = {
      ...pods,
      begin: 'initial',
      fieldSelector: 'spec.nodeName=n 1',
      resourceVersion: '',
    } as const;
    for await (const each of client.watch(query, never())) observed.push(each);
    assert.deepEqual(observed, [
      { type: 'ADDED', object: { ...pod, note: 'grün €😀' } },
      { type: 'DELETED', object: pod },
    ]);
    const parameters = new URL(requests[0] ?? '', server.url).searchParams;
    assert.deepEqual(Object.fromEntries(parameters), {
      watch: 'true',
      allowWatchBookmarks: 'true',
      fieldSelector: 'spec.nodeName=n 1',
      timeoutSeconds: '300',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
    });
    await client.get({ resource: apiResources.pods, name: 'web', namespace: 'a' }, {}, never());
    assert.equal(server.connections, 1);
  });

  test('returns an ERROR event and a rejected watch as API errors', async () => {
    const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' };
    let inStream = true;
    await using server = await serve((_request, response) => {
      if (inStream) response.writeHead(200).end(event('ERROR', status));
      else respondJson(response, { ...status, code: 422 }, 422);
    });
    using client = clientFor(await config(server.url));
    const first = () => client.watch(pods, never())[Symbol.asyncIterator]().next();
    await assert.rejects(first(), isCode('API_GONE'));
    inStream = false;
    await assert.rejects(first(), isCode('API_INVALID'));
  });

  test('reports a server that disconnects in the middle of a watch event, or sends malformed or oversized data', async () => {
    const responses: ((response: ServerResponse) => void)[] = [
      (response) => response.write(event('ADDED', pod), () => response.socket?.destroy()),
      (response) => response.end('{"type":"ADD'),
      (response) => response.end('nonsense\n'),
      (response) => response.end(event('RENAMED', pod)),
      (response) => response.write(`{"a":"${'x'.repeat(5000)}`),
    ];
    await using server = await serve((_request, response) => {
      response.writeHead(200);
      responses.shift()?.(response);
    });
    using client = clientFor(await config(server.url), { longestEvent: 2000 });
    const drain = async () => {
      for await (const _event of client.watch(pods, never()));
    };
    await assert.rejects(drain(), isCode('API_UNAVAILABLE'));
    await assert.rejects(drain(), isCode('API_UNAVAILABLE'));
    await assert.rejects(drain(), isCode('API_BAD_ANSWER'));
    await assert.rejects(drain(), isCode('API_BAD_ANSWER'));
    await assert.rejects(drain(), isCode('API_BAD_ANSWER'));
    client.closeIdle();
    await until(() => server.sockets.size === 0);
  });

  test('releases the connection immediately when a watch is aborted, whether or not its events are being consumed', async () => {
    await using server = await serve((_request, response) => {
      response.writeHead(200).write(event('ADDED', pod).repeat(3));
    });
    using client = clientFor(await config(server.url));
    const reason = new KubelingError('CANCELLED', 'enough');
    const waiting = new AbortController();
    const events = client.watch(pods, waiting.signal)[Symbol.asyncIterator]();
    for (let taken = 0; taken < 3; taken++) await events.next();
    const next = events.next();
    waiting.abort(reason);
    await assert.rejects(next, (error) => error === reason);
    await until(() => server.sockets.size === 0);

    const busy = new AbortController();
    const rest = client.watch(pods, busy.signal)[Symbol.asyncIterator]();
    await rest.next();
    busy.abort(reason);
    await until(() => server.sockets.size === 0);
    await assert.rejects(rest.next(), (error) => error === reason);

    for await (const _event of client.watch(pods, never())) break;
    await until(() => server.sockets.size === 0);
  });

  test('treats a server as dead when it has not ended a watch long after its timeout', async () => {
    await using server = await serve((_request, response) => {
      response.writeHead(200).write(event('ADDED', pod));
    });
    const clock = new VirtualClock();
    using client = clientFor(await config(server.url), { clock });
    const events = client.watch(pods, never())[Symbol.asyncIterator]();
    await events.next();
    assert.equal(clock.pendingTimers, 1);
    const next = events.next();
    await clock.advance(329_000);
    assert.equal(server.sockets.size, 1);
    const reported = assert.rejects(next, isCode('API_DEADLINE'));
    await clock.advance(1_000);
    await reported;
    await until(() => server.sockets.size === 0);
    assert.equal(clock.pendingTimers, 0);
  });

  test('ends an unresponsive watch when the client closes silent connections, as if the server had ended it', async () => {
    const responses: ServerResponse[] = [];
    await using server = await serve((_request, response) => {
      responses.push(response.writeHead(200));
      response.write(event('ADDED', pod));
    });
    const clock = new VirtualClock();
    using client = clientFor(await config(server.url), { clock });
    const watching = client.watch(pods, never());
    const events = watching[Symbol.asyncIterator]();
    await events.next();
    await clock.advance(14_000);
    client.closeSilent();
    responses[0]?.write(event('MODIFIED', pod));
    assert.equal((await events.next()).done, false, 'the silence must last');
    const last = events.next();
    await clock.advance(14_000);
    client.closeSilent();
    assert.equal(server.sockets.size, 1, 'data arrived meanwhile');
    await clock.advance(1_000);
    client.closeSilent();
    assert.equal((await last).done, true);
    await until(() => server.sockets.size === 0);
  });

  test('notifies callers that wait for an unreachable server on the first response to any request', async () => {
    let status = 503;
    await using server = await serve((_request, response) => respondJson(response, pod, status));
    const clock = new VirtualClock();
    using client = clientFor(await config(server.url), { clock });
    let returns = 0;
    using _listening = client.onReturn?.(() => returns++);
    const ask = () => client.get({ resource: apiResources.pods, name: 'web' }, {}, never());
    await assert.rejects(ask(), isCode('API_FAILED'));
    await clock.advance(60_000);
    await assert.rejects(ask(), isCode('API_FAILED'));
    assert.equal(returns, 0);
    status = 200;
    await ask();
    await ask();
    assert.equal(returns, 1);
  });

  test('applies backpressure to the server when the consumer is slow', async () => {
    const line = event('ADDED', { ...pod, filler: 'x'.repeat(10_000) });
    let written = 0;
    let held = false;
    await using server = await serve((_request, response) => {
      response.writeHead(200);
      const pump = () => {
        while (response.write(line)) written++;
        held = true;
        response.once('drain', pump);
      };
      pump();
    });
    using client = clientFor(await config(server.url));
    const controller = new AbortController();
    const events = client.watch(pods, controller.signal)[Symbol.asyncIterator]();
    await events.next();
    let before = -1;
    await until(() => {
      const still = held && written === before;
      before = written;
      return still;
    });
    assert(written < 3_000, `${written} events were buffered`);
    controller.abort(new KubelingError('CANCELLED', 'enough'));
  });

  test('leaves no resources behind when the server repeatedly closes connections', {
    timeout: 300_000,
  }, async () => {
    let held = 0;
    await using server = await serve((request, response) => {
      if (request.url?.includes('watch')) response.writeHead(200).write(event('ADDED', pod));
      else held++;
    });
    const { clock, waiting } = countingClock();
    using client = clientFor(await config(server.url), { clock });
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const ref = { resource: apiResources.nodes, name: 'n' };
    let count = 0;
    const drain = async () => {
      for await (const _event of client.watch(pods, signal)) count++;
    };
    for (let round = 1; round <= 5; round++) {
      const calls = Array.from({ length: 12 }, () => [drain(), client.update(ref, pod, signal)]).flat();
      const settled = Promise.allSettled(calls);
      await until(() => count === 12 * round && held === 12 * round);
      server.cutAll();
      for (const { status } of await settled) assert.equal(status, 'rejected');
    }
    process.off('warning', warned);
    assert.deepEqual(warnings, []);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    assert.equal(waiting(), 0);
    await until(() => server.sockets.size === 0);
  });

  test('does not grow the heap over a hundred thousand watch events', { timeout: 120_000 }, async () => {
    const line = event('MODIFIED', { metadata: { name: 'web', labels: { filler: 'y'.repeat(300) } } });
    const batch = line.repeat(500);
    await using server = await serve((_request, response) => {
      response.writeHead(200);
      let left = 230;
      const pump = () => {
        while (left-- > 0) if (!response.write(batch)) return response.once('drain', pump);
        return response.end();
      };
      pump();
    });
    const reader = join(import.meta.dirname, 'api-watch-reader.ts');
    const args = ['--expose-gc', reader, await config(server.url)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    await once(child, 'close');
    const { events, growth } = JSON.parse(output);
    assert.equal(events, 115_000);
    assert(growth < 2_000_000, `the heap grew by ${growth} bytes over 100,000 events`);
  });
});

/** Starts an HTTP proxy that supports only CONNECT. */
async function startProxy(): Promise<{ server: Server; asked: string[]; url: string }> {
  const requests: string[] = [];
  const server = createServer();
  server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    requests.push(`${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim());
    const port = Number(request.url?.split(':').at(-1));
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    for (const each of [socket, onward]) each.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, asked: requests, url: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('API client with a proxy', () => {
  test('tunnels TLS through the proxy of the kubeconfig or the environment', async () => {
    await using server = await serve((_request, response) => respondJson(response, pod));
    const proxy = await startProxy();
    const url = `https://api.test:${server.port}`;
    const ref = { resource: apiResources.nodes, name: 'n' };
    {
      using client = clientFor(await config(url, { 'proxy-url': `http://me:secret@${proxy.url}` }));
      assert.deepEqual(await client.get(ref, {}, never()), pod);
    }
    {
      using client = clientFor(await config(url), { environment: { HTTPS_PROXY: `http://${proxy.url}` } });
      assert.deepEqual(await client.get(ref, {}, never()), pod);
    }
    const credentials = Buffer.from('me:secret').toString('base64');
    assert.deepEqual(proxy.asked, [
      `api.test:${server.port} Basic ${credentials}`,
      `api.test:${server.port}`,
    ]);
    {
      const environment = { HTTPS_PROXY: `http://${proxy.url}`, NO_PROXY: '.test' };
      using client = clientFor(await config(url), { environment });
      await assert.rejects(client.get(ref, {}, never()), isCode('API_UNAVAILABLE'));
    }
    assert.equal(proxy.asked.length, 2);
    proxy.server.closeAllConnections();
    await new Promise((resolve) => proxy.server.close(resolve));
  });
});

describe('several API clients of a node', () => {
  test('the clients of a node share connections, and a busy client does not delay the heartbeat', async () => {
    await using server = await serve((_request, response) => respondJson(response, pod));
    const path = await config(server.url);
    const clock = realClock();
    const clients = createApiClients({
      kubeconfig: () => loadKubeconfig({ path, files: hostApiFiles }),
      clock,
      logger: collectLogs(clock).logger,
      userAgent: 'kubeling-test',
      environment: {},
      main: { qps: 0.1, burst: 1 },
      events: { qps: 50, burst: 100 },
      heartbeatMs: 10_000,
    });
    const ref = { resource: apiResources.nodes, name: 'n' };
    await clients.main.get(ref, {}, never());
    const held = clients.main.get(ref, {}, never());
    for (let beat = 0; beat < 20; beat++) await clients.heartbeat.get(ref, {}, never());
    await clients.events.get(ref, {}, never());
    assert.equal(server.connections, 1);
    clients.close();
    await assert.rejects(held, isCode('CANCELLED'));
  });
});
