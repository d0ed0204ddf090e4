import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import grpc from '@grpc/grpc-js';
import type { HTTPGetAction } from '../../src/kinds/index.ts';
import { realClock, sendHttp, systemRandom } from '../../src/lib/index.ts';
import { podUid } from '../../src/pods/index.ts';
import { HealthCheckRequest, HealthCheckResponse } from '../../src/probes/gen/health.ts';
import { networkProber, type ProbeAction, type ProbeResponse, probeAction } from '../../src/probes/index.ts';
import { freePort } from '../free-ports.ts';

const prober = networkProber({ clock: realClock(), random: systemRandom(), dialHttp: sendHttp });

function ask(
  action: ProbeAction,
  timeoutMs = 60_000,
  { signal } = new AbortController(),
): Promise<ProbeResponse> {
  const who = { podUid: podUid('u'), podName: 'p', podNamespace: 'n', container: 'c', containerId: 'i' };
  return prober.probe({ type: 'readiness', ...who, action, timeoutMs }, signal);
}

function get(httpGet: HTTPGetAction, timeoutMs?: number): Promise<ProbeResponse> {
  const target = {
    container: { name: 'c' },
    podIp: '127.0.0.1',
    expand: (command: readonly string[]) => command,
  };
  return ask(probeAction({ httpGet }, target), timeoutMs);
}

/** Makes a server listen on a free loopback port until the test ends. */
async function listening(server: Server): Promise<{ readonly port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function serve(listener: RequestListener) {
  return listening(createServer(listener));
}

describe('HTTP probe', () => {
  it('an HTTP probe accepts malformed responses, such as those of a server written as a shell one-liner', async () => {
    const responses = [
      'HTTP/1.0 200 OK\n\nfine',
      'HTTP/1.1 200 OK\nContent-Length: 4\n\nfine',
      `HTTP/1.1 200 OK\r\nX-Long: ${'a'.repeat(100_000)}\r\nContent-Length: 4\r\n\r\nfine`,
    ];
    for (const response of responses) {
      const talk = (socket: Socket) => socket.once('data', () => socket.end(response));
      await using server = await listening(createSocketServer(talk));
      assert.deepEqual(await get({ port: server.port }), { is: 'success', output: 'fine' });
    }
  });

  it('an HTTP probe has the result unknown when its response breaks off', async () => {
    for (const [how, status] of [
      ['end', 200],
      ['destroy', 500],
      ['resetAndDestroy', 200],
    ] as const) {
      const begun = `HTTP/1.1 ${status} OK\r\nContent-Length: 100\r\n\r\nfi`;
      const talk = (socket: Socket) => socket.once('data', () => socket.write(begun, () => socket[how]()));
      await using server = await listening(createSocketServer(talk));
      await assert.rejects(get({ port: server.port }), { code: 'HTTP_CUT_OFF' });
    }
  });

  it('an HTTP probe succeeds with 200 to 299 and reports the truncated body', async () => {
    await using server = await serve((_request, response) => response.end('x'.repeat(50_000)));
    assert.deepEqual(await get({ port: server.port }), { is: 'success', output: 'x'.repeat(10_240) });
  });

  it('an HTTP probe fails with status 400 and above and does not report the body', async () => {
    await using server = await serve((request, response) => {
      response.statusCode = Number(request.url?.slice(1));
      response.end('secret');
    });
    for (const code of [400, 404, 500, 503]) {
      const output = `HTTP probe failed with statuscode: ${code}`;
      assert.deepEqual(await get({ port: server.port, path: `/${code}` }), { is: 'failure', output });
    }
  });

  it('an HTTP probe sends User-Agent, Accept */* and Connection: close, and requests no compression', async () => {
    const observed: IncomingMessage[] = [];
    await using server = await serve((request, response) => {
      observed.push(request);
      response.end();
    });
    await get({ port: server.port, path: '/a?b=c' });
    const [request] = observed;
    assert.equal(request?.url, '/a?b=c');
    assert.deepEqual(request?.headers, {
      'user-agent': 'kube-probe/1.36',
      accept: '*/*',
      host: `127.0.0.1:${server.port}`,
      connection: 'close',
    });
  });

  it('an HTTP probe sends the headers of its spec; empty headers remove default headers', async () => {
    const observed: IncomingMessage[] = [];
    await using server = await serve((request, response) => {
      observed.push(request);
      response.end();
    });
    const httpHeaders = [
      { name: 'Host', value: 'example.org' },
      { name: 'X-A', value: '1' },
      { name: 'x-a', value: '2' },
      { name: 'accept', value: '' },
      { name: 'User-Agent', value: 'me' },
    ];
    await get({ port: server.port, httpHeaders });
    assert.deepEqual(observed[0]?.headers, {
      host: 'example.org',
      'x-a': '1, 2',
      'user-agent': 'me',
      connection: 'close',
    });
  });

  it('an HTTP probe ignores proxy settings', async () => {
    process.env['http_proxy'] = 'http://127.0.0.1:1';
    process.env['NODE_USE_ENV_PROXY'] = '1';
    try {
      await using server = await serve((_request, response) => response.end());
      assert.equal((await get({ port: server.port })).is, 'success');
    } finally {
      delete process.env['http_proxy'];
      delete process.env['NODE_USE_ENV_PROXY'];
    }
  });

  it('an HTTP probe follows a limited number of redirects on its host and no redirect to another host', async () => {
    await using server = await serve((request, response) => {
      const [, kind, count] = request.url?.split('/') ?? [];
      const left = Number(count);
      const next = kind === 'away' ? 'http://192.0.2.1/' : `/${kind}/${left - 1}`;
      if (kind === 'bare') response.writeHead(301);
      else if (left === 0) response.writeHead(200);
      else response.writeHead(302, { location: next });
      response.end('body');
    });
    const at = (path: string) => get({ port: server.port, path });
    assert.deepEqual(await at('/down/9'), { is: 'success', output: 'body' });
    const endless = await at('/down/20');
    assert.equal(endless.is, 'failure');
    assert.match(endless.output, /stopped after 10 redirects/);
    const output = 'Probe terminated redirects, Response body: body';
    assert.deepEqual(await at('/away/1'), { is: 'warning', output });
    assert.deepEqual(await at('/bare/1'), { is: 'warning', output });
  });

  it('an HTTP probe fails with the connection error when no server listens', async () => {
    const port = await freePort();
    assert.deepEqual(await get({ port }), {
      is: 'failure',
      output: `Get "http://127.0.0.1:${port}/": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
  });

  it('an HTTP probe fails when the response takes too long to begin or to complete', async () => {
    await using silent = await serve(() => {});
    await using halting = await serve((_request, response) => response.write('some'));
    for (const { port } of [silent, halting]) {
      const { is, output } = await get({ port }, 300);
      assert.equal(is, 'failure');
      assert.match(output, /context deadline exceeded/);
    }
  });

  it('an HTTPS probe verifies no certificate and fails when the server does not support TLS', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'klg-tls-'));
    try {
      const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
      const subject = ['-subj', '/CN=nobody', '-days', '1', '-nodes', '-newkey', 'rsa:2048'];
      execFileSync('openssl', ['req', '-x509', ...subject, '-keyout', key, '-out', cert], {
        stdio: 'ignore',
      });
      const options = { key: readFileSync(key), cert: readFileSync(cert) };
      await using secure = await listening(
        createTlsServer(options, (_request, response) => response.end('tls')),
      );
      assert.deepEqual(await get({ port: secure.port, scheme: 'HTTPS' }), { is: 'success', output: 'tls' });
      await using plain = await serve((_request, response) => response.end());
      assert.equal((await get({ port: plain.port, scheme: 'HTTPS' })).is, 'failure');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('an HTTP probe is aborted immediately when its probe worker stops', async () => {
    await using silent = await serve(() => {});
    const controller = new AbortController();
    const request = {
      scheme: 'http',
      host: '127.0.0.1',
      port: silent.port,
      target: '/',
      headers: [],
    } as const;
    const requested = ask({ kind: 'http', request }, 60_000, controller);
    controller.abort(new Error('over'));
    await assert.rejects(requested, /over/);
  });
});

describe('TCP probe', () => {
  it('a TCP probe succeeds when the port accepts connections and fails otherwise', async () => {
    await using server = await listening(createSocketServer());
    assert.deepEqual(await ask({ kind: 'tcp', host: '127.0.0.1', port: server.port }), {
      is: 'success',
      output: '',
    });
    const port = await freePort();
    assert.deepEqual(await ask({ kind: 'tcp', host: '127.0.0.1', port }), {
      is: 'failure',
      output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
    });
    assert.equal((await ask({ kind: 'tcp', host: 'nowhere.invalid', port })).is, 'failure');
  });
});

type Check = (
  service: string,
  answer: (status: HealthCheckResponse['status'] | grpc.ServiceError) => void,
) => void;

/** A gRPC health server of grpc-js. */
async function health(check: Check) {
  const server = new grpc.Server();
  const agents: unknown[] = [];
  const definition = {
    check: {
      path: '/grpc.health.v1.Health/Check',
      requestStream: false,
      responseStream: false,
      requestSerialize: (value: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(value)),
      requestDeserialize: (bytes: Buffer) => HealthCheckRequest.decode(bytes),
      responseSerialize: (value: HealthCheckResponse) => Buffer.from(HealthCheckResponse.encode(value)),
      responseDeserialize: (bytes: Buffer) => HealthCheckResponse.decode(bytes),
    },
  };
  server.addService(definition, {
    check(
      call: grpc.ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>,
      done: grpc.sendUnaryData<HealthCheckResponse>,
    ) {
      agents.push(call.metadata.get('user-agent')[0]);
      check(call.request.service, (status) =>
        typeof status === 'string' ? done(null, { status }) : done(status),
      );
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, agents, [Symbol.dispose]: () => server.forceShutdown() };
}

describe('gRPC probe', () => {
  const at = (port: number, service = '', timeoutMs?: number) =>
    ask({ kind: 'grpc', host: '127.0.0.1', port, service }, timeoutMs);

  it('a gRPC probe sends the name of its service and succeeds when the service is serving', async () => {
    using server = await health((service, response) =>
      response(service === 'down' ? 'NOT_SERVING' : 'SERVING'),
    );
    assert.deepEqual(await at(server.port), { is: 'success', output: 'service healthy' });
    assert.match(String(server.agents[0]), /^kube-probe\/1\.36/);
    assert.deepEqual(await at(server.port, 'down'), {
      is: 'failure',
      output: 'service unhealthy (responded with "NOT_SERVING")',
    });
  });

  it('a gRPC probe fails when the call takes too long', async () => {
    using server = await health(() => {});
    assert.deepEqual(await at(server.port, '', 300), {
      is: 'failure',
      output: 'timeout: health rpc did not complete within 300ms',
    });
  });

  it('a gRPC probe fails for an unknown service and for a server without the health service', async () => {
    using server = await health((_service, response) =>
      response(Object.assign(new Error(), { code: 5, details: 'who?', metadata: new grpc.Metadata() })),
    );
    assert.deepEqual(await at(server.port), {
      is: 'failure',
      output: 'error: health rpc probe failed: who?',
    });
    const bare = new grpc.Server();
    const port = await new Promise<number>((resolve) => {
      bare.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_error, bound) =>
        resolve(bound),
      );
    });
    const response = await at(port);
    bare.forceShutdown();
    assert.equal(response.is, 'failure');
    assert.match(response.output, /does not implement the grpc health protocol/);
  });

  it('a gRPC probe fails at its timeout when no server listens or the server uses another protocol', async () => {
    const port = await freePort();
    const startMs = performance.now();
    const { is, output } = await at(port, '', 3_000);
    assert.equal(is, 'failure');
    assert.match(
      output,
      new RegExp(`^timeout: failed to connect service "127.0.0.1:${port}" within 3s: .*ECONNREFUSED`),
    );
    assert.ok(performance.now() - startMs >= 2_900);
    await using mute = await listening(createSocketServer());
    assert.match((await at(mute.port, '', 300)).output, /^timeout: failed to connect service /);
  });

  it('a gRPC probe waits for a server that is still starting', async () => {
    const port = await freePort();
    const requested = at(port, '', 120_000);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const server = new grpc.Server();
    await new Promise((resolve) => {
      server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), resolve);
    });
    const response = await requested;
    server.forceShutdown();
    assert.match(response.output, /does not implement/);
  });
});
