import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { StatusError } from '../../src/local-api/api/api-types.ts';
import type { StreamCall, StreamProxy } from '../../src/local-api/http/index.ts';
import { ask, FrontRig, servingTls } from '../fakes/api-front.ts';
import { CertificateFolder } from '../fakes/certificate-authority.ts';
import { until } from '../fakes/until.ts';

const pod = '/api/v1/namespaces/a/pods/x';

/** A stream handler that echoes what it receives. */
class EchoStreams implements StreamProxy {
  readonly calls: StreamCall[] = [];

  serves(entry: { readonly resource: { readonly plural: string } }, subresource: string): boolean {
    return entry.resource.plural === 'pods' && ['exec', 'log', 'proxy'].includes(subresource);
  }

  respond: StreamProxy['respond'] = async (call, outgoing) => {
    this.calls.push(call);
    if (call.subresource === 'exec')
      throw new StatusError({ code: 400, reason: 'BadRequest', message: 'Upgrade request required' });
    outgoing.writeHead(200, { 'Content-Type': 'text/plain' }).end('a line\n');
  };

  upgrade: StreamProxy['upgrade'] = async (call, socket, head, signal) => {
    this.calls.push(call);
    if (call.query.has('refuse'))
      throw new StatusError({
        code: 404,
        reason: 'NotFound',
        message: 'no such pod',
        details: { name: 'x' },
      });
    if (call.query.has('break')) throw new TypeError('oops');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.write(head);
    socket.pipe(socket);
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  };
}

interface RawConnection {
  readonly heard: () => string;
  readonly say: (text: string) => void;
  readonly closed: () => boolean;
  readonly end: () => void;
}

function raw(port: number): RawConnection {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  let heard = '';
  let closed = false;
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  return {
    heard: () => heard,
    say: (text) => void socket.write(text),
    closed: () => closed,
    end: () => void socket.destroy(),
  };
}

function upgradeOf(path: string, token = 'admin', method = 'GET'): string {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${token}`];
  return [...lines, 'Connection: Upgrade', 'Upgrade: echo', '', ''].join('\r\n');
}

test('forwards an upgraded connection with the bytes that followed the upgrade request', async () => {
  const streams = new EchoStreams();
  await using harness = await FrontRig.open({ deps: { streams } });
  const client = raw(harness.port);
  client.say(`${upgradeOf(`${pod}/exec?command=a&command=b`)}early`);
  await until('the first bytes are returned', () => client.heard().endsWith('early'));
  client.say('later');
  await until('the next bytes are returned', () => client.heard().endsWith('earlylater'));
  const { user, name, namespace, subresource, query } = streams.calls[0] ?? assert.fail();
  assert.deepEqual(
    [user.name, namespace, name, subresource, query.getAll('command')],
    ['admin', 'a', 'x', 'exec', ['a', 'b']],
  );
  client.end();
});

test('returns a plain HTTP response for an upgrade that the server or the handler rejects', async () => {
  const streams = new EchoStreams();
  await using harness = await FrontRig.open({ deps: { streams } });
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [`${pod}/exec?refuse=1`, 'admin', /^HTTP\/1\.1 404 .*"reason":"NotFound"/s],
    [`${pod}/exec?break=1`, 'admin', /^HTTP\/1\.1 500 .*"reason":"InternalError"/s],
    [`${pod}/exec`, 'nobody', /^HTTP\/1\.1 403 .*cannot create resource \\"pods\/exec\\"/s],
    [`${pod}/exec`, 'made-up', /^HTTP\/1\.1 401 /],
  ];
  for (const [path, token, expected] of cases) {
    const client = raw(harness.port);
    client.say(upgradeOf(path, token));
    await until('the connection is closed', () => client.closed());
    assert.match(client.heard(), expected);
    assert.match(client.heard(), /\r\nAudit-Id: [0-9a-f-]+\r\n/);
  }
  assert.equal(harness.complaints.length, 1);
});

test('ignores an Upgrade header on paths without a stream', async () => {
  await using harness = await FrontRig.open({ deps: { streams: new EchoStreams() } });
  const client = raw(harness.port);
  client.say(upgradeOf(pod));
  await until('there is a response', () => client.heard().includes('\r\n\r\n'));
  assert.match(client.heard(), /^HTTP\/1\.1 200 OK\r\n/);
  client.end();
});

test('lets stream handlers respond to requests without an upgrade and reports their errors as API errors', async () => {
  const streams = new EchoStreams();
  await using harness = await FrontRig.open({ deps: { streams } });
  const log = await harness.ask(`${pod}/log`);
  assert.deepEqual(
    [log.status, log.text, log.headers['cache-control']],
    [200, 'a line\n', 'no-cache, private'],
  );
  const exec = await harness.ask(`${pod}/exec`, { method: 'POST' });
  assert.deepEqual([exec.status, exec.json['message']], [400, 'Upgrade request required']);
  await harness.ask(`${pod}/proxy/a%20b/c/?d=e`, { method: 'PUT', body: 'x' });
  assert.equal(streams.calls.at(-1)?.rest, '/a%20b/c/');
});

test('disconnects upgraded connections when the server closes', async () => {
  await using harness = await FrontRig.open({ deps: { streams: new EchoStreams() } });
  const client = raw(harness.port);
  client.say(upgradeOf(`${pod}/exec`));
  await until('it is upgraded', () => client.heard().includes('101'));
  await harness.front.close();
  await until('the connection is closed', () => client.closed());
});

test('requests a client certificate without requiring it, and returns 401 for an untrusted one', async () => {
  using folder = new CertificateFolder();
  const ours = folder.authority('/CN=ours');
  const theirs = folder.authority('/CN=theirs');
  await using harness = await FrontRig.open();
  harness.front.setSecureContext({ ...(await servingTls()), ca: ours.pem });
  const with_ = (pair: { readonly cert: string; readonly key: string }) =>
    ask({ port: harness.port, path: '/healthz', agent: false, ...pair });
  assert.equal((await with_(ours.issue({ subject: '/CN=somebody' }))).status, 200);
  const refused = await with_(theirs.issue({ subject: '/CN=somebody' }));
  assert.deepEqual([refused.status, refused.json['reason']], [401, 'Unauthorized']);
  assert.equal((await harness.ask('/healthz', { token: '' })).status, 200);
});
