import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { CertificateFolder, type KeyPair } from '../fakes/certificate-authority.ts';
import {
  bearer,
  type Credential,
  encodedToken,
  endpoints,
  nameOf,
  optionsOf,
  streamPaths,
} from '../fakes/endpoint-matrix.ts';
import { call, TlsNode } from '../fakes/tls-node.ts';
import { until } from './containerd-fixture.ts';

let node: TlsNode;
let stranger: CertificateFolder;
let alice: KeyPair;
let mallory: KeyPair;
let bad: Readonly<Record<string, Credential>>;

before(async () => {
  node = await TlsNode.open();
  stranger = new CertificateFolder();
  const { authority } = node;
  alice = authority.issue({ subject: '/O=team/O=ops/CN=alice' });
  mallory = authority.issue({ subject: '/CN=mallory' });
  const selfMade = stranger.authority('/CN=ca').issue({ subject: '/O=system:masters/CN=alice' });
  bad = {
    'no credential': {},
    'a certificate of another authority of the same name': selfMade,
    'an expired certificate': authority.issue({ subject: '/CN=alice', days: -1 }),
    'a certificate for servers': authority.issue({ subject: '/CN=alice', use: 'serverAuth' }),
    'a certificate issued by a non-CA certificate': authority
      .intermediate('/CN=client', 'clientAuth')
      .issue({ subject: '/CN=alice' }),
    'a wrong token': bearer('guess'),
    'an empty token': bearer(''),
    'another scheme': { headers: { authorization: 'Basic YWxpY2U6eA==' } },
    'a bad certificate and a bad token': { ...selfMade, ...bearer('guess') },
    'a wrong token among protocols': {
      headers: { 'sec-websocket-protocol': `v4.channel.k8s.io, ${encodedToken('guess')}` },
    },
  };
});

after(async () => {
  await node?.[Symbol.asyncDispose]();
  stranger?.[Symbol.dispose]();
});

test('rejects every endpoint and method without valid credentials', async () => {
  for (const [shown, credential] of Object.entries(bad)) {
    for (const endpoint of endpoints) {
      const { status, body } = await call(node, endpoint.path, optionsOf(endpoint, credential));
      assert.equal(`${status} ${body}`, '401 Unauthorized', `${nameOf(endpoint)} with ${shown}`);
    }
  }
  assert.deepEqual(node.reached, []);
  assert.deepEqual(node.asked, []);
});

test('returns the missing permission to an authenticated but unauthorized user, and serves nothing', async () => {
  for (const credential of [mallory, bearer('token-of-mallory')] as const) {
    for (const endpoint of endpoints) {
      const { status, body } = await call(node, endpoint.path, optionsOf(endpoint, credential));
      const needs = `subresource(s)=[${endpoint.subresources.join(' ')}]`;
      const expected = `Forbidden (user=mallory, verb=${endpoint.verb}, resource=nodes, ${needs})\n`;
      assert.equal(`${status} ${body}`, `403 ${expected}`, nameOf(endpoint));
    }
  }
  assert.deepEqual(node.reached, []);
});

test('rejects every client while the API server is unavailable, and treats clients without a certificate as anonymous', async () => {
  node.reviews = 'down';
  try {
    for (const endpoint of endpoints) {
      const known = await call(node, endpoint.path, optionsOf(endpoint, alice));
      const [subresource] = endpoint.subresources;
      const expected = `Authorization error (user=alice, verb=${endpoint.verb}, resource=nodes, subresource=${subresource})`;
      assert.equal(`${known.status} ${known.body}`, `500 ${expected}`, nameOf(endpoint));
      const { status } = await call(node, endpoint.path, optionsOf(endpoint, bearer('token-of-alice')));
      assert.equal(status, 401, nameOf(endpoint));
    }
  } finally {
    node.reviews = 'up';
  }
  assert.deepEqual(node.reached, []);
});

test('serves an authorized user authenticated by certificate or by token', async () => {
  const inside: Credential = {
    headers: { 'sec-websocket-protocol': `v4.channel.k8s.io, ${encodedToken('token-of-alice')}` },
  };
  for (const credential of [alice, bearer('token-of-alice'), inside] as const) {
    for (const endpoint of endpoints) {
      if (credential === inside && endpoint.upgrade !== 'websocket') continue;
      const { status, body } = await call(node, endpoint.path, optionsOf(endpoint, credential));
      assert.equal(status, endpoint.status, `${nameOf(endpoint)}: ${body}`);
    }
  }
  const reached = new Set(node.reached);
  const all = [
    'health',
    'pods',
    'runningpods',
    'configz',
    'logs',
    'journal',
    'container-logs',
    'checkpoint',
    'run',
  ];
  for (const what of [...all, 'exec', 'attach', 'portForward']) assert(reached.has(what), what);
  node.reached.length = 0;
});

test('sends the user name and groups of a client certificate to the API server', async () => {
  node.asked.length = 0;
  await call(node, '/metrics', alice);
  const [spec] = node.asked;
  assert(spec !== undefined);
  assert.deepEqual(spec.user.groups, ['team', 'ops', 'system:authenticated']);
  assert.match(
    spec.user.extra?.['authentication.kubernetes.io/credential-id']?.[0] ?? '',
    /^X509SHA256=[0-9a-f]{64}$/,
  );
  assert.deepEqual([spec.name, spec.verb, spec.subresource], ['n1', 'get', 'metrics']);
});

test('uses the user name of a client certificate unchanged', async () => {
  const ask = async (subject: string) => {
    node.asked.length = 0;
    const { status } = await call(node, '/metrics', node.authority.issue({ subject }));
    const user = node.asked[0]?.user;
    return [status, user?.name, user?.groups.filter((group) => group !== 'system:authenticated')];
  };
  assert.deepEqual(await ask('/CN=system:node:n1'), [403, 'system:node:n1', []]);
  assert.deepEqual(await ask('/CN=eve\nO=system:masters'), [403, 'eve\nO=system:masters', []]);
  assert.deepEqual(await ask('/O=a, O=b/CN=alice'), [200, 'alice', ['a, O=b']]);
  assert.deepEqual(await ask('/CN=alice/CN=bob'), [401, undefined, undefined], 'rejects two names');
  assert.deepEqual(await ask('/O=system:masters'), [401, undefined, undefined], 'rejects an empty name');
});

test('allows a request when one of its possible subresources is allowed, and sends no further access review', async () => {
  node.asked.length = 0;
  assert.equal((await call(node, '/pods', alice)).status, 200);
  assert.deepEqual(
    node.asked.map(({ subresource }) => subresource),
    ['pods'],
  );
});

test('accepts an intermediate certificate sent by the client', async () => {
  const { cert, key } = node.authority.intermediate('/CN=between').issue({ subject: '/CN=alice' });
  assert.equal((await call(node, '/pods', { cert, key })).status, 200);
  const alone = cert.slice(0, cert.indexOf('-----END CERTIFICATE-----') + 26);
  assert.equal((await call(node, '/pods', { cert: alone, key })).status, 401);
});

test('rejects an expired certificate on an existing connection and closes the connection', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    assert.equal((await call(node, '/pods', { ...alice, agent })).status, 200);
    assert.equal((await call(node, '/pods', { ...alice, agent })).headers['connection'], 'keep-alive');
    node.laterMs = 3 * 24 * 3_600_000;
    const late = await call(node, '/pods', { ...alice, agent });
    assert.deepEqual([late.status, late.headers['connection']], [401, 'close']);
  } finally {
    node.laterMs = 0;
    agent.destroy();
  }
});

test('applies a new client CA file immediately, also on existing connections', async () => {
  await using own = await TlsNode.open();
  using folder = new CertificateFolder();
  const next = folder.authority('/CN=next');
  const old = own.authority.issue({ subject: '/CN=alice' });
  const young = next.issue({ subject: '/CN=alice' });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    assert.equal((await call(own, '/pods', { ...old, agent })).status, 200);
    assert.equal((await call(own, '/pods', young)).status, 401);
    const beside = `${own.caPath}.new`;
    writeFileSync(beside, 'this is no certificate');
    renameSync(beside, own.caPath);
    await until(
      () => JSON.stringify([...own.logs.records]).includes('keeping the current one'),
      'the broken file is detected',
    );
    assert.equal((await call(own, '/pods', { ...old, agent })).status, 200, 'the last good authorities stay');
    writeFileSync(beside, next.pem);
    renameSync(beside, own.caPath);
    await until(async () => (await call(own, '/pods', young)).status === 200, 'the new authority is trusted');
    assert.equal((await call(own, '/pods', { ...old, agent })).status, 401, 'on an existing connection');
    assert.equal((await call(own, '/pods', old)).status, 401, 'on a new connection');
  } finally {
    agent.destroy();
  }
});

async function shake(port: number, options: object): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  await once(socket, 'secureConnect');
  return socket;
}

test('resumes no TLS session, so that a revoked certificate authority is not trusted any longer', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const limits = { minVersion: version, maxVersion: version };
    const first = await shake(node.port, { ...limits, ...alice });
    let session: Buffer | undefined = first.getSession();
    first.on('session', (ticket: Buffer) => {
      session = ticket;
    });
    first.write('GET /pods HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    first.resume();
    await once(first, 'close');
    assert(session !== undefined);
    // The second connection presents no certificate; a resumed session would authenticate it as
    // alice.
    const second = await shake(node.port, { ...limits, session });
    assert.equal(second.isSessionReused(), false, version);
    second.write('GET /pods HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let output = '';
    second.on('data', (chunk) => {
      output += chunk;
    });
    await once(second, 'close');
    assert.match(output, /^HTTP\/1\.1 401 /, version);
  }
});

test('serves a new certificate to new connections and keeps existing ones', async () => {
  const before = await shake(node.port, {});
  const old = before.getPeerX509Certificate()?.fingerprint256;
  const pair = node.servingPair();
  node.serveWith(pair);
  const next = await shake(node.port, {});
  assert.notEqual(next.getPeerX509Certificate()?.fingerprint256, old);
  node.serveWith({ cert: pair.cert, key: node.servingPair().key });
  const third = await shake(node.port, {});
  const [served, expected] = [third, next].map((each) => each.getPeerX509Certificate()?.fingerprint256);
  assert.equal(served, expected, 'a pair that does not match leaves the last good one');
  before.write('GET /pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-of-alice\r\n\r\n');
  assert.match(String((await once(before, 'data'))[0]), /^HTTP\/1\.1 200 /);
  for (const socket of [before, next, third]) socket.destroy();
});

test("forwards a stream to the runtime without the client's credentials, and closes each direction separately", async () => {
  await using own = await TlsNode.open();
  const heads: string[] = [];
  const runtime = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      if (heads.push(String(chunk)) === 1) {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      }
    });
    socket.on('end', () => socket.end('answer'));
  }).listen(0, '127.0.0.1');
  await once(runtime, 'listening');
  own.runtimePort = (runtime.address() as AddressInfo).port;
  try {
    const socket = await shake(own.port, { allowHalfOpen: true });
    const lines = [
      'GET /exec/default/web/main?output=1 HTTP/1.1',
      ...['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Cookie: secret'],
      `Sec-WebSocket-Protocol: v4.channel.k8s.io, ${encodedToken('token-of-alice')}`,
    ];
    socket.end(`${lines.join('\r\n')}\r\n\r\n`);
    assert.match(await text(socket), /^HTTP\/1\.1 101 [\s\S]*\r\n\r\nanswer$/);
    assert.match(heads[0] ?? '', /^GET \/once HTTP\/1\.1\r\n/);
    assert.match(heads[0] ?? '', /Sec-WebSocket-Protocol: v4\.channel\.k8s\.io\r\n/);
    assert.doesNotMatch(heads.join(''), /authorization|bearer|secret/i);
  } finally {
    runtime.close();
  }
});

test('treats requests without credentials as anonymous where configured, but rejects bad credentials', async () => {
  await using own = await TlsNode.open({ anonymous: 'allowed', authorization: { mode: 'AlwaysAllow' } });
  assert.equal((await call(own, '/pods', {})).status, 200);
  assert.equal((await call(own, '/pods', bearer('guess'))).status, 401);
  assert.equal(
    (await call(own, '/pods', bad['a certificate of another authority of the same name'] ?? {})).status,
    401,
  );
});

test('ignores bearer tokens when webhook authentication is disabled', async () => {
  await using own = await TlsNode.open({ anonymous: 'allowed', tokenWebhook: { kind: 'off' } });
  const { status, body } = await call(own, '/pods', bearer('token-of-alice'));
  assert.equal(status, 403);
  assert.match(body, /user=system:anonymous/);
  assert.deepEqual(own.tokensAsked, []);
});

test('serves no exec, attach or port-forward endpoint when debugging handlers are disabled', async () => {
  await using own = await TlsNode.open({}, 'off');
  const mine = own.authority.issue({ subject: '/CN=alice' });
  for (const endpoint of endpoints.filter(({ path }) =>
    /^\/(?:exec|attach|portForward|run|containerLogs|logs)/.test(path),
  )) {
    const { status, body } = await call(own, endpoint.path, optionsOf(endpoint, mine));
    assert.equal(`${status} ${body}`, '405 Debug endpoints are disabled.\n', nameOf(endpoint));
    assert.equal((await call(own, endpoint.path, optionsOf(endpoint, {}))).status, 401);
  }
  for (const path of ['/configz', '/checkpoint/default/web/main', '/debug/flags/v', '/debug/flight']) {
    assert.equal((await call(own, path, mine)).status, 404, path);
  }
  assert.equal((await call(own, '/pods', mine)).status, 200);
});

test('serves only limited read-only endpoints on the unauthenticated port', async () => {
  node.reached.length = 0;
  const plain = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${node.readOnlyPort}${path}`, { method });
    return `${response.status} ${response.status === 200 ? '' : await response.text()}`.trim();
  };
  for (const path of ['/healthz', '/healthz/ping', '/pods', '/metrics', '/metrics/slis']) {
    assert.equal(await plain(path), '200', path);
  }
  for (const path of [
    ...streamPaths,
    '/run/a/b/c',
    '/containerLogs/a/b/c',
    '/runningpods/',
    '/debug/pprof/heap',
    '/logs/x',
  ]) {
    assert.equal(await plain(path), '405 Debug endpoints are disabled.', path);
    assert.equal(await plain(path, 'POST'), '405 Debug endpoints are disabled.', path);
  }
  for (const path of ['/configz', '/checkpoint/default/web/main', '/debug/flags/v', '/debug/flight', '/']) {
    assert.equal(await plain(path, 'POST'), '404 404: Page Not Found', path);
  }
  assert.equal(await plain('/metrics/slis', 'DELETE'), '405 405: Method Not Allowed');
  assert.equal(await plain('/pods', 'POST'), '405 405: Method Not Allowed');
  assert.deepEqual([...new Set(node.reached)], ['health', 'pods']);
});

test('changes the log level for authorized clients and limits the size of the request body', async () => {
  const put = async (body: string) => {
    const { status } = await call(node, '/debug/flags/v', { ...alice, method: 'PUT', body });
    return [status, node.verbosity.level];
  };
  assert.deepEqual(await put('4'), [200, 4]);
  assert.deepEqual(await put('much'), [400, 4]);
  assert.deepEqual(await put('-1'), [400, 4]);
  assert.deepEqual(await put('9'.repeat(5_000)), [400, 4]);
  assert.equal((await call(node, '/debug/flags/v', alice)).status, 406);
});

test('serves host logs only from the log directory', async () => {
  const read = async (path: string) => await call(node, path, alice);
  assert.equal((await read('/logs/sys.log')).body, 'hello\n');
  assert.match((await read('/logs/')).body, /<a href="\.\/sys\.log">sys\.log<\/a>/);
  assert.match((await read('/logs')).body, /<a href="\.\/logs\/sys\.log">/);
  assert.equal((await read('/logs/escape')).status, 403);
  assert.equal((await read('/logs/..%2f..%2fetc%2fpasswd')).status, 403);
  assert.equal((await read('/logs/none')).status, 404);
  assert.equal((await read('/logs/?query=/sys.log')).body, 'hello\n');
  assert.equal((await read('/logs/?query=sys')).body, 'hello\n');
  assert.equal((await read('/logs/?query=a%3Bid')).status, 406);
  assert.equal((await read('/logs/sys.log?query=sys')).status, 406);
});

test('counts requests in metrics under a fixed set of endpoint names', async () => {
  for (let index = 0; index < 50; index++) await call(node, `/made-up-${index}`, {});
  const page = (await call(node, '/metrics', alice)).body;
  assert.doesNotMatch(page, /made-up/);
  assert.match(
    page,
    /kubelet_http_requests_total\{method="GET",path="other",server_type="readwrite",long_running="false"\} \d+/,
  );
});

test('writes no secret to the log', () => {
  const lines = JSON.stringify([...node.logs.records]);
  assert.doesNotMatch(lines, /token-of-|guess|Bearer \w/);
});
