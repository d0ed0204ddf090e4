import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { chmod, copyFile, readFile, rename, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { apiResources, isApiCode, mainLimits } from '../../src/api/index.ts';
import { isKind, KubelingError } from '../../src/lib/index.ts';
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

const web = { resource: apiResources.pods, namespace: 'default', name: 'web' };
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default' } };

let authority: Authority;
let serving: Issued;
let configs = 0;

before(async () => {
  authority = await Authority.create();
  serving = await authority.issue({ subject: '/CN=server', names: 'IP:127.0.0.1,DNS:api.test' });
});
after(() => authority[Symbol.asyncDispose]());

function serverTls() {
  return { cert: serving.cert, key: serving.key };
}

function serve(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<TestServer> {
  return TestServer.start(serverTls(), handle);
}

interface Config {
  readonly cluster?: Record<string, unknown>;
  readonly user?: Record<string, unknown>;
}

function config(server: string, { cluster, user = {} }: Config = {}): Promise<string> {
  const path = join(authority.directory, `kubeconfig-${++configs}`);
  return writeKubeconfig(path, { server, cluster: cluster ?? { 'certificate-authority': 'ca.crt' }, user });
}

function failsWith(code: string, ...words: readonly (string | RegExp)[]) {
  return (error: unknown) => {
    assert(error instanceof KubelingError, String(error));
    assert.equal(error.code, code, error.message);
    for (const word of words) assert.match(error.message, typeof word === 'string' ? new RegExp(word) : word);
    return true;
  };
}

describe('API client over TLS', () => {
  test("sends each verb in the API's form over one connection", async () => {
    const observed: unknown[] = [];
    await using server = await serve((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        const { method, url, headers } = request;
        const body = Buffer.concat(chunks).toString();
        observed.push([method, url, headers['content-type'], body === '' ? undefined : JSON.parse(body)]);
        assert.equal(headers['user-agent'], 'kubeling-test');
        assert.equal(headers.authorization, 'Bearer abc');
        const isList = method === 'GET' && url?.includes('limit');
        respondJson(
          response,
          isList ? { metadata: { resourceVersion: '7' }, items: [{ metadata: {} }] } : pod,
        );
      });
    });
    using client = clientFor(await config(`${server.url}/prefix/`, { user: { token: 'abc' } }));
    const json = 'application/json';
    await client.get(web, { resourceVersion: '0' }, never());
    const list = await client.list({ ...web, limit: 500, resourceVersion: '0' }, never());
    await client.create({ resource: apiResources.nodes }, { metadata: { name: 'n' } }, never());
    await client.update(web, pod, never());
    const status = { ...web, subresource: 'status' };
    await client.patch(status, { kind: 'strategic', body: { status: { phase: 'Running' } } }, never());
    await client.delete(web, { gracePeriodSeconds: 0, uid: 'u1' }, never());
    const token = {
      resource: apiResources.serviceAccounts,
      namespace: 'default',
      name: 'sa',
      subresource: 'token',
    };
    await client.post(token, { kind: 'TokenRequest' }, never());
    const path = '/prefix/api/v1/namespaces/default/pods';
    assert.deepEqual(observed, [
      ['GET', `${path}/web?resourceVersion=0`, undefined, undefined],
      ['GET', `${path}?resourceVersion=0&limit=500`, undefined, undefined],
      ['POST', '/prefix/api/v1/nodes', json, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }],
      ['PUT', `${path}/web`, json, pod],
      [
        'PATCH',
        `${path}/web/status`,
        'application/strategic-merge-patch+json',
        { status: { phase: 'Running' } },
      ],
      [
        'DELETE',
        `${path}/web`,
        json,
        { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid: 'u1' } },
      ],
      ['POST', '/prefix/api/v1/namespaces/default/serviceaccounts/sa/token', json, { kind: 'TokenRequest' }],
    ]);
    assert.deepEqual(list, {
      metadata: { resourceVersion: '7', continue: undefined },
      items: [{ apiVersion: 'v1', kind: 'Pod', metadata: {} }],
    });
    assert.equal(server.connections, 1);
  });

  test('presents the client certificate, and closes old connections and watches when it changes', async () => {
    const names: unknown[] = [];
    const tls = { ...serverTls(), requestCert: true, ca: await readFile(authority.caFile, 'utf8') };
    await using server = await TestServer.start(tls, (request, response) => {
      names.push((request.socket as TLSSocket).getPeerCertificate().subject.CN);
      if (request.url?.includes('watch=true')) {
        response.writeHead(200).write('{"type":"BOOKMARK","object":{}}\n');
      } else respondJson(response, pod);
    });
    const [old, renewed] = [
      await authority.issue({ subject: '/O=system:nodes/CN=system:node:old' }),
      await authority.issue({ subject: '/O=system:nodes/CN=system:node:new' }),
    ];
    const current = join(authority.directory, 'current.pem');
    await writeFile(current, old.cert + old.key);
    const user = { 'client-certificate': 'current.pem', 'client-key': 'current.pem' };
    using client = clientFor(await config(server.url, { user }));
    await client.get(web, {}, never());
    const watch = client.watch({ ...web, timeoutSeconds: 300, begin: 'at-version' }, never());
    const events = watch[Symbol.asyncIterator]();
    assert.equal((await events.next()).value.type, 'BOOKMARK');
    await writeFile(`${current}.new`, renewed.cert + renewed.key);
    await rename(`${current}.new`, current);
    client.reload();
    assert.deepEqual(await events.next(), { value: undefined, done: true });
    await until(() => server.sockets.size === 0);
    await client.get(web, {}, never());
    assert.deepEqual(names, ['system:node:old', 'system:node:old', 'system:node:new']);
  });

  test('accepts inline certificates and keys and a different tls-server-name in the kubeconfig', async () => {
    await using server = await serve((_request, response) => respondJson(response, pod));
    const ca = (await readFile(authority.caFile)).toString('base64');
    const cluster = { 'certificate-authority-data': ca, 'tls-server-name': 'api.test' };
    const node = await authority.issue({ subject: '/CN=system:node:n' });
    const user = {
      'client-certificate-data': Buffer.from(node.cert).toString('base64'),
      'client-key-data': Buffer.from(node.key).toString('base64'),
    };
    using client = clientFor(await config(server.url, { cluster, user }));
    assert.deepEqual(await client.get(web, {}, never()), pod);
    const other = await config(server.url, { cluster: { ...cluster, 'tls-server-name': 'other.test' } });
    using misled = clientFor(other);
    await assert.rejects(misled.get(web, {}, never()), failsWith('API_UNAVAILABLE', 'other.test'));
  });

  test('rejects a server certificate of another authority unless verification is disabled', async () => {
    await using foreign = await Authority.create();
    await using server = await serve((_request, response) => respondJson(response, pod));
    using client = clientFor(
      await config(server.url, { cluster: { 'certificate-authority': foreign.caFile } }),
    );
    await assert.rejects(
      client.get(web, {}, never()),
      failsWith('API_UNAVAILABLE', `127.0.0.1:${server.port}`, 'not signed by', foreign.caFile),
    );
    using trusting = clientFor(await config(server.url, { cluster: { 'insecure-skip-tls-verify': true } }));
    assert.deepEqual(await trusting.get(web, {}, never()), pod);
  });

  test('reports an expired server certificate with its date and an expired client certificate with its file', async () => {
    const until = '20210203040506Z';
    const expired = await authority.issue({ subject: '/CN=server', names: 'IP:127.0.0.1', until });
    await using late = await TestServer.start(
      { cert: expired.cert, key: expired.key },
      (_request, response) => respondJson(response, pod),
    );
    using client = clientFor(await config(late.url));
    await assert.rejects(
      client.get(web, {}, never()),
      failsWith('API_UNAVAILABLE', "server's certificate expired on Feb {2}3 04:05:06 2021"),
    );
    await using server = await serve((_request, response) =>
      respondJson(
        response,
        { kind: 'Status', message: 'Unauthorized', reason: 'Unauthorized', code: 401 },
        401,
      ),
    );
    const old = await authority.issue({ subject: '/CN=system:node:n', until });
    const user = { 'client-certificate': old.certFile, 'client-key': old.keyFile };
    using ours = clientFor(await config(server.url, { user }));
    const reported = [old.certFile, /expired on 2021-02-03T04:05:06/];
    await assert.rejects(ours.get(web, {}, never()), failsWith('API_UNAUTHORIZED', ...reported));
    const strict = { ...serverTls(), requestCert: true, ca: await readFile(authority.caFile, 'utf8') };
    await using checking = await TestServer.start(strict, (_request, response) => respondJson(response, pod));
    using refused = clientFor(await config(checking.url, { user }));
    await assert.rejects(refused.get(web, {}, never()), failsWith('API_UNAVAILABLE', ...reported));
  });

  test('reads a changed token file again, at the latest after a 401', async () => {
    const tokens: unknown[] = [];
    await using server = await serve((request, response) => {
      tokens.push(request.headers.authorization);
      if (request.headers.authorization === 'Bearer second') respondJson(response, pod);
      else respondJson(response, { kind: 'Status', message: 'no', code: 401 }, 401);
    });
    const file = join(authority.directory, 'token');
    await writeFile(file, 'first\n');
    using client = clientFor(await config(server.url, { user: { tokenFile: 'token' } }));
    await assert.rejects(client.get(web, {}, never()), failsWith('API_UNAUTHORIZED'));
    await writeFile(file, 'second\n');
    assert.deepEqual(await client.get(web, {}, never()), pod);
    assert.deepEqual(tokens, ['Bearer first', 'Bearer first', 'Bearer second']);
  });

  test('uses the token and certificate of an exec plugin and runs it again when they expire', async () => {
    const observed: unknown[] = [];
    const tls = { ...serverTls(), requestCert: true, ca: await readFile(authority.caFile, 'utf8') };
    await using server = await TestServer.start(tls, (request, response) => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      observed.push([request.headers.authorization, subject.CN]);
      respondJson(response, pod);
    });
    const node = await authority.issue({ subject: '/CN=from-plugin' });
    const plugin = join(authority.directory, 'plugin.mjs');
    const count = join(authority.directory, 'count');
    await writeFile(plugin, pluginSource);
    await chmod(plugin, 0o755);
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: ['plugin.mjs', node.certFile, node.keyFile, count].map((arg) =>
        arg === 'plugin.mjs' ? plugin : arg,
      ),
      env: [{ name: 'PREFIX', value: 'token' }],
      interactiveMode: 'IfAvailable',
      provideClusterInfo: true,
    };
    using client = clientFor(await config(server.url, { user: { exec } }));
    await client.get(web, {}, never());
    await client.get(web, {}, never());
    await client.get(web, {}, never());
    // The credential of the first run expired an hour ago; that of the second run expires in an
    // hour.
    assert.deepEqual(observed, [
      ['Bearer token-1', 'from-plugin'],
      ['Bearer token-2', 'from-plugin'],
      ['Bearer token-2', 'from-plugin'],
    ]);
    const info = JSON.parse(await readFile(`${count}.info`, 'utf8'));
    assert.equal(info.apiVersion, 'client.authentication.k8s.io/v1');
    assert.equal(info.spec.interactive, false);
    assert.equal(info.spec.cluster.server, server.url);
    assert.equal(
      Buffer.from(info.spec.cluster['certificate-authority-data'], 'base64').toString(),
      await readFile(authority.caFile, 'utf8'),
    );
  });

  test('reports the stderr of an exec plugin that fails and the install hint of one that is missing', async () => {
    await using server = await serve((_request, response) => respondJson(response, pod));
    const base = { apiVersion: 'client.authentication.k8s.io/v1beta1' };
    const failing = { ...base, command: '/bin/sh', args: ['-c', 'echo no luck >&2; exit 3'] };
    using client = clientFor(await config(server.url, { user: { exec: failing } }));
    await assert.rejects(client.get(web, {}, never()), failsWith('API_UNAVAILABLE', '/bin/sh', 'no luck'));
    const missing = { ...base, command: 'no-such-plugin', installHint: 'get it from the shelf' };
    using other = clientFor(await config(server.url, { user: { exec: missing } }));
    await assert.rejects(
      other.get(web, {}, never()),
      failsWith('API_UNAVAILABLE', 'no-such-plugin', 'from the shelf'),
    );
  });
});

const pluginSource = `
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
const [cert, key, count] = process.argv.slice(2);
const run = existsSync(count) ? Number(readFileSync(count, 'utf8')) + 1 : 1;
writeFileSync(count, String(run));
writeFileSync(count + '.info', process.env.KUBERNETES_EXEC_INFO);
const expires = new Date(Date.now() + (run === 1 ? -3600_000 : 3600_000)).toISOString();
console.log(JSON.stringify({
  apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential',
  status: {
    token: process.env.PREFIX + '-' + run, expirationTimestamp: expires,
    clientCertificateData: readFileSync(cert, 'utf8'), clientKeyData: readFileSync(key, 'utf8'),
  },
}));
`;

describe('API client with a failing API server', () => {
  test('retries a request after the delay of Retry-After', async () => {
    let requestCount = 0;
    await using server = await serve((_request, response) => {
      if (requestCount++ > 1) return respondJson(response, pod);
      response.writeHead(requestCount === 1 ? 429 : 503, { 'retry-after': '0' }).end('{}');
    });
    using client = clientFor(await config(server.url));
    await client.create({ ...web }, pod, never());
    assert.equal(requestCount, 3);
  });

  test('fails after ten retries and does not wait longer than the deadline of the call', async () => {
    let requestCount = 0;
    let rest = '0';
    await using server = await serve((_request, response) => {
      requestCount++;
      const status = { kind: 'Status', message: 'slow down', reason: 'TooManyRequests', code: 429 };
      response.writeHead(429, { 'retry-after': rest }).end(JSON.stringify(status));
    });
    using client = clientFor(await config(server.url));
    await assert.rejects(client.get(web, {}, never()), failsWith('API_TOO_MANY', 'slow down'));
    assert.equal(requestCount, 11);
    rest = '3600';
    await assert.rejects(client.get(web, {}, never()), (error) => {
      assert(error instanceof KubelingError);
      return error.details['retryAfterMs'] === 3_600_000;
    });
    assert.equal(requestCount, 12);
  });

  test('fails at the deadline when the server stops answering and keeps the connection pool usable', async () => {
    let silent = true;
    await using server = await serve((request, response) => {
      if (!silent) respondJson(response, pod);
      else if (request.url?.includes('half')) response.writeHead(200).write('{"half":');
    });
    const limits = { rate: { kind: 'unlimited' }, ...mainLimits, tryMs: 3_000 } as const;
    using client = clientFor(await config(server.url), { limits });
    await assert.rejects(
      client.get(web, {}, never()),
      failsWith('API_DEADLINE', 'get pods/web in default', '3000 ms'),
    );
    await assert.rejects(client.get({ ...web, name: 'half' }, {}, never()), failsWith('API_DEADLINE'));
    await until(() => server.sockets.size === 0);
    silent = false;
    assert.deepEqual(await client.get(web, {}, never()), pod);
  });

  test('names the cause when the server is unreachable', async () => {
    const closed = await serve(() => {});
    const { url, port } = closed;
    await closed[Symbol.asyncDispose]();
    using client = clientFor(await config(url));
    await assert.rejects(client.get(web, {}, never()), (error) => {
      failsWith('API_UNAVAILABLE', `127.0.0.1:${port}`, 'ECONNREFUSED')(error);
      return (error as KubelingError).details['systemCode'] === 'ECONNREFUSED';
    });
  });

  test('reports a server that is not an API server', async () => {
    let page = '<html>welcome</html>';
    await using server = await serve((_request, response) => {
      if (page === '') response.writeHead(302, { location: '/login' }).end();
      else response.writeHead(200, { 'content-type': 'text/html' }).end(page);
    });
    using client = clientFor(await config(server.url), { longestBody: 1000 });
    await assert.rejects(client.get(web, {}, never()), failsWith('API_BAD_ANSWER', 'text/html'));
    page = 'x'.repeat(2000);
    await assert.rejects(client.get(web, {}, never()), failsWith('API_BAD_ANSWER', '1000 bytes'));
    page = '';
    await assert.rejects(client.get(web, {}, never()), failsWith('API_BAD_ANSWER', 'status 302'));
    const plain = createTcpServer((socket) => socket.end('220 mail\r\n')).listen(0, '127.0.0.1');
    await until(() => plain.address() !== null);
    const { port } = plain.address() as { port: number };
    using mail = clientFor(await config(`https://127.0.0.1:${port}`));
    await assert.rejects(mail.get(web, {}, never()), failsWith('API_BAD_ANSWER', 'does not use TLS'));
    plain.close();
  });

  test('retries only safe requests when the connection is cut before the response', async () => {
    const requests: unknown[] = [];
    let cuts = 2;
    await using server = await serve((request, response) => {
      requests.push(request.method);
      if (cuts-- > 0) request.socket.destroy();
      else respondJson(response, pod);
    });
    using client = clientFor(await config(server.url));
    assert.deepEqual(await client.get(web, {}, never()), pod);
    cuts = 1;
    await assert.rejects(client.create(web, pod, never()), failsWith('API_UNAVAILABLE', 'create pods'));
    assert.deepEqual(requests, ['GET', 'GET', 'GET', 'POST']);
    cuts = 0;
    await client.get(web, {}, never());
    cuts = 1;
    await client.patch(web, { kind: 'merge', body: {} }, never());
    assert.deepEqual(requests.slice(4), ['GET', 'PATCH', 'PATCH']);
  });

  test('retries a safe request when the response is cut in the middle', async () => {
    const requests: unknown[] = [];
    await using server = await serve((request, response) => {
      requests.push(request.method);
      if (requests.length % 2 === 0) return respondJson(response, pod);
      response.writeHead(200, { 'content-length': '1000' }).write('{"half":', () => request.socket.destroy());
    });
    using client = clientFor(await config(server.url));
    assert.deepEqual(await client.get(web, {}, never()), pod);
    await assert.rejects(client.update(web, pod, never()), failsWith('API_UNAVAILABLE', 'update pods/web'));
    assert.deepEqual(requests, ['GET', 'GET', 'PUT']);
  });

  test('fails at the deadline and closes the connection when the server accepts but never starts TLS', async () => {
    const sockets = new Set<Socket>();
    const mute = createTcpServer((socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket)).on('error', () => {});
      socket.resume();
    }).listen(0, '127.0.0.1');
    await until(() => mute.address() !== null);
    const { port } = mute.address() as { port: number };
    const limits = { rate: { kind: 'unlimited' }, ...mainLimits, tryMs: 1_000 } as const;
    using client = clientFor(await config(`https://127.0.0.1:${port}`), { limits });
    await assert.rejects(client.get(web, {}, never()), failsWith('API_DEADLINE'));
    await until(() => sockets.size === 0);
    using proxied = clientFor(
      await config('https://api.test', {
        cluster: { 'certificate-authority': 'ca.crt', 'proxy-url': `http://127.0.0.1:${port}` },
      }),
      { limits },
    );
    await assert.rejects(proxied.get(web, {}, never()), failsWith('API_DEADLINE'));
    proxied.close();
    await until(() => sockets.size === 0);
    mute.close();
  });

  test('leaves no listeners on a long-lived signal after calls and watches', async () => {
    await using server = await serve((request, response) => {
      if (request.url?.includes('watch')) response.writeHead(200).end('{"type":"ADDED","object":{}}\n');
      else respondJson(response, pod);
    });
    using client = clientFor(await config(server.url));
    const { signal } = new AbortController();
    for (let each = 0; each < 5; each++) {
      await client.get(web, {}, signal);
      for await (const _event of client.watch({ ...web, timeoutSeconds: 1, begin: 'at-version' }, signal));
    }
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    // One more connection was opened to probe for HTTP/2.
    assert.equal(server.connections, 2);
  });

  test('finishes a request in flight when the client certificate changes, and then closes its connection', async () => {
    let answer: (() => void) | undefined;
    await using server = await serve((_request, response) => {
      answer = () => respondJson(response, pod);
    });
    const [first, second] = [
      await authority.issue({ subject: '/CN=a' }),
      await authority.issue({ subject: '/CN=b' }),
    ];
    const pem = join(authority.directory, 'swapped.pem');
    await writeFile(pem, first.cert + first.key);
    const user = { 'client-certificate': pem, 'client-key': pem };
    using client = clientFor(await config(server.url, { user }));
    const call = client.get(web, {}, never());
    await until(() => answer !== undefined);
    // The certificate file is replaced before the key file, so they do not match and are not
    // loaded.
    await writeFile(pem, second.cert + first.key);
    client.reload();
    await until(() => client.records.toArray().some(({ message }) => message.includes('the certificates')));
    await writeFile(pem, second.cert + second.key);
    client.reload();
    await until(() => client.records.toArray().some(({ message }) => message.includes('closing old')));
    answer?.();
    assert.deepEqual(await call, pod);
    await until(() => server.sockets.size === 0);
  });

  test('reports the status message of a rejected request', async () => {
    await using server = await serve((_request, response) =>
      respondJson(
        response,
        { kind: 'Status', message: 'pods "web" not found', reason: 'NotFound', code: 404 },
        404,
      ),
    );
    using client = clientFor(await config(server.url));
    await assert.rejects(client.get(web, {}, never()), failsWith('API_NOT_FOUND', 'pods "web" not found'));
  });

  test('releases the connection immediately when a call is aborted', async () => {
    await using server = await serve(() => {});
    using client = clientFor(await config(server.url));
    const controller = new AbortController();
    const call = client.get(web, {}, controller.signal);
    await until(() => server.sockets.size === 1);
    const reason = new KubelingError('CANCELLED', 'enough');
    controller.abort(reason);
    await assert.rejects(call, (error) => error === reason);
    await until(() => server.sockets.size === 0);
  });

  test('fails requests in flight and later ones after the client is closed', async () => {
    await using server = await serve(() => {});
    const client = clientFor(await config(server.url));
    const call = client.get(web, {}, never());
    await until(() => server.sockets.size === 1);
    client.close();
    await assert.rejects(call, (error) => isKind(error, 'Cancelled'));
    await assert.rejects(client.get(web, {}, never()), (error) => isKind(error, 'Cancelled'));
    await until(() => server.sockets.size === 0);
  });
});

describe('API client with missing credential files', () => {
  test('fails requests with the name of the missing file until it exists', async () => {
    await using server = await serve((_request, response) => respondJson(response, pod));
    const late = join(authority.directory, 'late-ca.crt');
    using client = clientFor(await config(server.url, { cluster: { 'certificate-authority': late } }));
    await assert.rejects(client.get(web, {}, never()), failsWith('API_UNAVAILABLE', 'late-ca.crt', 'ENOENT'));
    await copyFile(authority.caFile, late);
    assert.deepEqual(await client.get(web, {}, never()), pod);
    assert(isApiCode(new KubelingError('API_GONE', ''), 'API_GONE'));
  });
});
