import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { type ApiCall, StatusError } from '../../src/local-api/api/api-types.ts';
import { FrontRig } from '../fakes/api-front.ts';
import { until } from '../fakes/until.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

const pods = '/api/v1/namespaces/a/pods';

test('serves health checks to every caller and names the failed check', async () => {
  let problem: string | undefined = 'no disk';
  await using harness = await FrontRig.open({ deps: { checks: { store: () => problem } } });
  const anonymous = await harness.ask('/healthz', { token: '' });
  assert.deepEqual([anonymous.status, anonymous.text.includes('[-]store failed: no disk')], [500, true]);
  problem = undefined;
  const { status, text, headers } = await harness.ask('/healthz', { token: '' });
  assert.deepEqual([status, text], [200, 'ok']);
  assert.match(String(headers['audit-id']), /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  assert.equal(headers['cache-control'], 'no-cache, private');
  assert.equal((await harness.ask('/livez')).text, 'ok');
  assert.equal((await harness.ask('/readyz/store')).text, 'ok');
  assert.equal((await harness.ask('/readyz/nothing')).status, 404);
  assert.match(
    (await harness.ask('/readyz?verbose')).text,
    /\[\+\]ping ok\n\[\+\]store ok\nreadyz check passed\n/,
  );
});

test('allows anonymous callers only health checks and returns 401 for bad credentials', async () => {
  await using harness = await FrontRig.open();
  const anonymous = await harness.ask(`${pods}/x`, { token: '' });
  assert.equal(anonymous.status, 403);
  assert.equal(
    anonymous.json['message'],
    'pods "x" is forbidden: User "system:anonymous" cannot get resource "pods" in API group "" in the namespace "a"',
  );
  assert.deepEqual(anonymous.json['details'], { name: 'x', kind: 'pods' });
  const bad = await harness.ask(`${pods}/x`, { token: 'made-up' });
  assert.deepEqual([bad.status, bad.json['reason']], [401, 'Unauthorized']);
  const path = await harness.ask('/metrics', { token: 'nobody' });
  assert.equal(path.json['message'], 'forbidden: User "nobody" cannot get path "/metrics"');
  assert.deepEqual(harness.api.calls, []);
});

test('maps each HTTP request to the verb, resource and object of its API call', async () => {
  await using harness = await FrontRig.open();
  const shown = ({ verb, entry, namespace, name, subresource }: ApiCall) =>
    [verb, entry.resource.plural, namespace, name, subresource]
      .filter((part) => part !== undefined)
      .join(' ');
  const cases: readonly (readonly [string, string, string])[] = [
    ['GET', '/api/v1/pods', 'list pods'],
    ['GET', pods, 'list pods a'],
    ['GET', `${pods}?watch=true`, 'watch pods a'],
    ['GET', `${pods}?watch=1`, 'watch pods a'],
    ['GET', `${pods}?watch=0`, 'list pods a'],
    ['GET', `${pods}/x`, 'get pods a x'],
    ['HEAD', `${pods}/x`, 'get pods a x'],
    ['HEAD', `${pods}?watch=1`, 'list pods a'],
    ['GET', `${pods}/x/status`, 'get pods a x status'],
    ['GET', '/api/v1/namespaces', 'list namespaces'],
    ['GET', '/api/v1/namespaces/a', 'get namespaces a'],
    ['GET', '/api/v1/namespaces/a/status', 'get namespaces a status'],
    ['GET', '/api/v1/nodes/n', 'get nodes n'],
    ['GET', '/apis/coordination.k8s.io/v1/namespaces/a/leases/l', 'get leases a l'],
    ['DELETE', `${pods}/x`, 'delete pods a x'],
    ['DELETE', pods, 'deletecollection pods a'],
  ];
  for (const [method, path, expected] of cases) {
    const { status } = await harness.ask(path, { method });
    assert.equal(status, 200, `${method} ${path}`);
    assert.equal(shown(harness.api.last), expected, `${method} ${path}`);
  }
});

test('authorizes a request by its verb, subresource and the name in its field selector', async () => {
  await using harness = await FrontRig.open();
  await harness.ask(`${pods}?watch=1&fieldSelector=spec.nodeName%3Dn%2Cmetadata.name%3Dx&labelSelector=l`);
  assert.deepEqual(harness.asked.at(-1), {
    to: 'resource',
    verb: 'watch',
    group: '',
    version: 'v1',
    resource: 'pods',
    subresource: '',
    namespace: 'a',
    name: 'x',
    fieldSelector: 'spec.nodeName=n,metadata.name=x',
    labelSelector: 'l',
  });
  for (const part of ['exec', 'attach', 'portforward', 'proxy']) {
    await harness.ask(`${pods}/x/${part}`);
    const { verb, subresource, name } = harness.asked.at(-1) as Record<string, string>;
    assert.deepEqual([verb, subresource, name], ['create', part, 'x']);
  }
  await harness.ask(`${pods}/x/log`);
  assert.equal((harness.asked.at(-1) as Record<string, string>)['verb'], 'get');
});

test('returns 404 without an object name for an unknown path and 405 for an unsupported method', async () => {
  await using harness = await FrontRig.open();
  const missing = [
    '/nothing',
    '/api/v1/widgets',
    '/api/v1/pods/x',
    '/api/v1/namespaces/a/nodes',
    `${pods}/x/nothing`,
    `${pods}/x/status/more`,
    '/apis/apps/v1/deployments',
    '/api/v2/pods',
    '/api/v1//pods',
  ];
  for (const path of missing) {
    const { status, json } = await harness.ask(path);
    assert.deepEqual([status, json['reason'], json['details']], [404, 'NotFound', {}], path);
  }
  const wrong: readonly (readonly [string, string])[] = [
    ['POST', '/api/v1/pods'],
    ['DELETE', '/api/v1/pods'],
    ['PUT', pods],
    ['POST', `${pods}/x/status`],
    ['OPTIONS', pods],
    ['POST', '/healthz'],
    ['GET', '/apis/authentication.k8s.io/v1/tokenreviews'],
  ];
  for (const [method, path] of wrong) {
    const { status, json } = await harness.ask(path, { method });
    assert.deepEqual([status, json['reason']], [405, 'MethodNotAllowed'], `${method} ${path}`);
  }
  assert.equal((await harness.ask('/api/v1/%zz')).status, 400);
  assert.equal((await harness.ask(`${pods}/a%2Fb`)).status, 404);
});

test('returns a thrown StatusError with its code, details and Retry-After', async () => {
  await using harness = await FrontRig.open();
  harness.api.answer = () => {
    const details = { name: 'x', kind: 'pods', retryAfterSeconds: 3 };
    throw new StatusError({ code: 429, reason: 'TooManyRequests', message: 'later', details });
  };
  const { status, headers, json } = await harness.ask(`${pods}/x`);
  assert.deepEqual([status, headers['retry-after'], headers['content-type']], [429, '3', 'application/json']);
  assert.deepEqual(json, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'later',
    reason: 'TooManyRequests',
    details: { name: 'x', kind: 'pods', retryAfterSeconds: 3 },
    code: 429,
  });
  assert.deepEqual(harness.complaints, []);
});

test('returns 500 for any other exception, logs the exception as a bug and serves the next request', async () => {
  await using harness = await FrontRig.open();
  harness.api.answer = () => {
    throw new TypeError('oops');
  };
  const { status, json, headers } = await harness.ask(`${pods}/x`, { headers: { 'audit-id': 'mine-1' } });
  assert.deepEqual(
    [status, json['reason'], json['message']],
    [500, 'InternalError', 'Internal error occurred: oops'],
  );
  assert.equal(headers['audit-id'], 'mine-1');
  assert.equal(harness.complaints.length, 1);
  assert.match(JSON.stringify([...harness.logs.records]), /mine-1/);
  assert.equal((await harness.ask('/healthz')).status, 200);
});

test('adds each warning to the response once, quoted and limited in size', async () => {
  await using harness = await FrontRig.open();
  harness.api.answer = ({ warn }) => {
    for (const text of ['say "hi"\n', 'say "hi"\n', 'grüße']) warn(text);
    for (let count = 0; count < 500; count++) warn(`${count} ${'x'.repeat(300)}`);
    return { kind: 'object', code: 201, object: {} };
  };
  const { status, headers } = await harness.ask(`${pods}/x`);
  assert.equal(status, 201);
  const warning = Buffer.from(String(headers['warning']), 'latin1').toString();
  assert.ok(warning.startsWith('299 - "say \\"hi\\" ", 299 - "grüße", 299 - "0 xxx'), warning.slice(0, 80));
  assert.ok(warning.length < 5000);
});

test('returns 504 for slow requests: after a minute for reads, sooner for writes, or at the timeout the client requests', async () => {
  const clock = new VirtualClock();
  await using harness = await FrontRig.open({ clock });
  let given = 0;
  harness.api.answer = (_call, signal) =>
    new Promise((_resolve, reject) => {
      given++;
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  const cases: readonly (readonly [string, string, number])[] = [
    ['GET', `${pods}/x`, 60_000],
    ['DELETE', `${pods}/x`, 34_000],
    ['GET', `${pods}/x?timeout=5s`, 5_000],
    ['DELETE', `${pods}/x?timeout=10m`, 34_000],
  ];
  for (const [method, path, ms] of cases) {
    const before = given;
    const response = harness.ask(path, { method });
    await until('the API is called', () => given > before);
    await clock.advance(ms - 1);
    const pending = Symbol();
    assert.equal(await Promise.race([response, Promise.resolve(pending)]), pending);
    await clock.advance(1);
    const { status, json } = await response;
    assert.deepEqual([status, json['reason']], [504, 'Timeout'], path);
  }
  assert.equal((await harness.ask(`${pods}/x?timeout=soon`)).status, 400);
  assert.deepEqual(harness.complaints, []);
});

test('rejects requests above the concurrency limit with Retry-After', async () => {
  await using harness = await FrontRig.open({ deps: { maxInFlight: 2 } });
  const waiting: (() => void)[] = [];
  harness.api.answer = () =>
    new Promise((resolve) => waiting.push(() => resolve({ kind: 'object', code: 200, object: {} })));
  const first = [harness.ask(`${pods}/x`), harness.ask(`${pods}/y`)];
  await until('both are in flight', () => waiting.length === 2);
  const { status, headers, json } = await harness.ask(`${pods}/z`);
  assert.deepEqual([status, headers['retry-after'], json['reason']], [429, '1', 'TooManyRequests']);
  assert.equal((await harness.ask('/healthz')).status, 200);
  for (const finish of waiting.splice(0)) finish();
  for (const each of first) assert.equal((await each).status, 200);
  const next = harness.ask(`${pods}/z`);
  await until('a slot is free again', () => waiting.length === 1);
  waiting[0]?.();
  assert.equal((await next).status, 200);
});

test('aborts a request when its client disconnects', async () => {
  await using harness = await FrontRig.open();
  let aborted = false;
  harness.api.answer = (_call, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        aborted = true;
        reject(signal.reason);
      });
    });
  const socket = connect({ port: harness.port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {});
  socket.write(`GET ${pods}/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n`);
  await until('the API is called', () => harness.api.calls.length > 0);
  socket.destroy();
  await until('the call is aborted', () => aborted);
  assert.deepEqual(harness.complaints, []);
});

test('disconnects a client that does not read its response', async () => {
  const clock = new VirtualClock();
  await using harness = await FrontRig.open({ clock });
  const data = 'x'.repeat(30_000_000);
  harness.api.answer = () => ({ kind: 'object', code: 200, object: { data } });
  const socket = connect({ port: harness.port, host: '127.0.0.1', rejectUnauthorized: false });
  let closed = false;
  socket
    .on('error', () => {})
    .on('close', () => {
      closed = true;
    });
  socket.pause();
  socket.write(`GET ${pods}/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\n\r\n`);
  await until('the response waits to be read', () => harness.api.calls.length > 0 && clock.pendingTimers > 0);
  await clock.advance(60_000);
  socket.resume();
  await until('the connection is closed', () => closed);
  assert.equal(clock.pendingTimers, 0);
});

test('accepts a very long query and serves many requests on one connection', async () => {
  await using harness = await FrontRig.open();
  const { status } = await harness.ask(`${pods}/x?command=${'x'.repeat(100_000)}`);
  assert.equal(status, 200);
  assert.equal(harness.api.last.query.get('command')?.length, 100_000);
});

test('closes connections with malformed HTTP or TLS handshakes without affecting other clients', async () => {
  await using harness = await FrontRig.open();
  for (const bytes of ['\0\0\0\0', 'GET / HTTP/9\r\n\r\n', `GET ${'x'.repeat(2_000_000)} HTTP/1.1\r\n\r\n`]) {
    const socket = connect({ port: harness.port, host: '127.0.0.1', rejectUnauthorized: false });
    let closed = false;
    socket.on('error', () => {}).on('close', () => (closed = true));
    socket.resume();
    socket.write(bytes);
    await until('the connection is closed', () => closed);
  }
  assert.equal((await harness.ask('/healthz')).text, 'ok');
  assert.deepEqual(harness.complaints, []);
});

test('reports that the address is already in use', async () => {
  await using harness = await FrontRig.open();
  const again = FrontRig.open({ port: harness.port });
  await assert.rejects(again, { code: 'SERVER_LISTEN' });
});

test('does not log a bug when a request body breaks off', async () => {
  await using harness = await FrontRig.open();
  const socket = connect({ port: harness.port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {});
  const head = `POST ${pods} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin\r\nContent-Length: 99`;
  socket.write(`${head}\r\n\r\n{`);
  await until('it is read', () => harness.asked.length > 0);
  socket.destroy();
  await harness.ask('/healthz');
  assert.deepEqual([harness.complaints, harness.api.calls], [[], []]);
});

test('aborts requests in flight on close; close may be called twice', async () => {
  await using harness = await FrontRig.open();
  harness.api.answer = () => new Promise(() => {});
  const hanging = harness.ask(`${pods}/x`);
  await until('the API is called', () => harness.api.calls.length > 0);
  await Promise.all([harness.front.close(), harness.front.close()]);
  const { status, headers, json } = await hanging;
  assert.deepEqual([status, headers['retry-after'], json['reason']], [503, '1', 'ServiceUnavailable']);
  assert.deepEqual(harness.complaints, []);
});
