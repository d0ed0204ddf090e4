import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  constants,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import {
  frameFlag,
  frameOf,
  frameType,
  preface,
  settingsFrame,
  windowUpdateFrame,
} from '../../src/protocols/http2/frames.ts';
import { encodeHeaders } from '../../src/protocols/http2/index.ts';
import type { KeyPair } from '../fakes/certificate-authority.ts';
import { endpoints, nameOf } from '../fakes/endpoint-matrix.ts';
import { call, TlsNode } from '../fakes/tls-node.ts';

let node: TlsNode;
let alice: KeyPair;

before(async () => {
  node = await TlsNode.open();
  alice = node.authority.issue({ subject: '/O=team/CN=alice' });
});

after(async () => {
  await node?.[Symbol.asyncDispose]();
});

async function open(options: SecureClientSessionOptions = {}): Promise<ClientHttp2Session> {
  const session = connect(`https://127.0.0.1:${node.port}`, { rejectUnauthorized: false, ...options });
  session.on('error', () => {});
  await once(session, 'connect');
  return session;
}

async function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string) {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [answered] = await once(stream, 'response');
  return { status: answered[':status'], headers: answered, body: await text(stream) };
}

test('serves HTTP/2 to clients authenticated by certificate or by token, with many requests on one connection', async () => {
  const session = await open(alice);
  try {
    assert.equal(session.alpnProtocol, 'h2');
    const paths = ['/pods', '/metrics', '/configz', '/healthz'];
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, index) => ask(session, { ':path': paths[index % 4] ?? '' })),
    );
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
    assert.match(responses[0]?.body ?? '', /PodList/);
  } finally {
    session.destroy();
  }
  const stranger = await open();
  try {
    const { status } = await ask(stranger, { ':path': '/pods', authorization: 'Bearer token-of-alice' });
    assert.equal(status, 200);
  } finally {
    stranger.destroy();
  }
});

test('authenticates and authorizes HTTP/2 requests like HTTP/1.1 requests', async () => {
  const bad: Readonly<Record<string, OutgoingHttpHeaders>> = {
    none: {},
    token: { authorization: 'Bearer guess' },
    denied: { authorization: 'Bearer token-of-mallory' },
  };
  for (const [shown, headers] of Object.entries(bad)) {
    for (const endpoint of endpoints.filter(({ upgrade }) => upgrade === undefined)) {
      const { method, path } = endpoint;
      const session = await open();
      try {
        const closed = once(session, 'close');
        const { status } = await ask(session, { ':path': path, ':method': method, ...headers });
        assert.equal(status, shown === 'denied' ? 403 : 401, `${nameOf(endpoint)} with ${shown}`);
        if (shown !== 'denied') await closed;
      } finally {
        session.destroy();
      }
    }
  }
});

test('delivers an HTTP/2 request body to the handler, and closes the connection of a client with a bad certificate', async () => {
  const session = await open(alice);
  const put = { ':path': '/debug/flags/v', ':method': 'PUT' };
  assert.equal((await ask(session, put, '4')).status, 200);
  assert.equal(node.verbosity.level, 4);
  node.laterMs = 3 * 24 * 3_600_000;
  try {
    const closed = once(session, 'close');
    const { status, headers } = await ask(session, { ':path': '/pods' });
    assert.equal(status, 401);
    assert.equal(headers['connection'], undefined);
    await closed;
  } finally {
    node.laterMs = 0;
    session.destroy();
  }
});

test('rejects upgrades over HTTP/2', async () => {
  const session = await open(alice);
  try {
    const path = '/exec/default/web/main?output=1&command=id';
    const { status, body } = await ask(session, { ':path': path, ':method': 'POST' });
    assert.equal(`${status} ${body}`, '500 Upgrade request required');
    const tunnel = session.request({ ':method': 'CONNECT', ':authority': '127.0.0.1:22' });
    const [answered] = await once(tunnel, 'response');
    assert.equal(answered[':status'], 405);
  } finally {
    session.destroy();
  }
});

test('disconnects a client that opens and resets requests rapidly, without blocking other clients', async () => {
  const session = await open(alice);
  const closed = new Promise((resolve) => void session.once('close', resolve));
  let begun = 0;
  const flood = async () => {
    while (!session.destroyed && begun < 20_000) {
      begun++;
      try {
        const stream = session.request({ ':path': '/pods' });
        stream.on('error', () => {});
        stream.close(constants.NGHTTP2_CANCEL);
      } catch {
        // The HTTP/2 session is being closed, so no further request can be opened.
        return;
      }
      if (begun % 100 === 0) await delay(1);
    }
  };
  await Promise.all([flood(), closed]);
  assert.ok(begun < 20_000, `${begun} were opened`);
  assert.equal((await call(node, '/pods', alice)).status, 200);
});

test('does not count requests of a disconnected client as in flight', async () => {
  const session = await open(alice);
  await ask(session, { ':path': '/pods' });
  session.request({ ':path': '/pods' }).on('error', () => {});
  session.destroy();
  const underWay = async () => {
    const { body } = await call(node, '/metrics', alice);
    return [...body.matchAll(/^kubelet_http_inflight_requests\{.*path="pods".*\} (\d+)$/gm)].map(
      ([, n]) => n,
    );
  };
  const inTime = AbortSignal.timeout(120_000);
  while ((await underWay()).some((count) => count !== '0')) inTime.throwIfAborted();
});

/**
 * Sends raw HTTP/2 frames that the HTTP/2 client of Node.js cannot send, on a separate connection.
 */
async function openRaw(): Promise<TLSSocket> {
  const socket = connectTls({
    ...{ host: '127.0.0.1', port: node.port, ALPNProtocols: ['h2'], rejectUnauthorized: false },
    ...alice,
  });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  socket.write(Buffer.concat([preface, settingsFrame([])]));
  return socket.resume();
}

/** HTTP/2 stream errors that make a server reset the stream. */
const mistakes: Readonly<Record<string, (id: number) => Buffer>> = {
  'a window update of zero': (id) => windowUpdateFrame(id, 0),
  'a window that overflows': (id) => windowUpdateFrame(id, 2 ** 31 - 1),
  'data after the end': (id) => frameOf(frameType.data, 0, id, Buffer.from('more')),
};

for (const [what, mistake] of Object.entries(mistakes))
  test(`CVE-2025-8671: disconnects a client whose requests are reset for ${what}`, async () => {
    const socket = await openRaw();
    const closed = once(socket, 'close');
    const fields = { ':method': 'GET', ':scheme': 'https', ':authority': 'node', ':path': '/pods' };
    const { bytes } = encodeHeaders(Object.entries(fields));
    const flags = frameFlag.endHeaders | frameFlag.endStream;
    let begun = 0;
    for (let id = 1; socket.writable && begun < 20_000; id += 2) {
      begun++;
      socket.write(Buffer.concat([frameOf(frameType.headers, flags, id, bytes), mistake(id)]));
      if (begun % 100 === 0) await delay(1);
    }
    assert.ok(begun < 20_000, `${begun} were opened`);
    await closed;
    assert.equal((await call(node, '/pods', alice)).status, 200);
  });
