import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { collectLogs, MetricRegistry, realClock } from '../../src/lib/index.ts';
import { podUid } from '../../src/pods/index.ts';
import { healthRoutes, kubeletRoutes, Listener, type Route } from '../../src/server/index.ts';
import { until } from './containerd-fixture.ts';

let listener: Listener | undefined;
let problem: string | undefined;
const registry = new MetricRegistry({ onError: () => {} });
registry.counter({ name: 'kubelet_tests_total', help: 'Tests.', labels: [] }).with({}).inc();

const view = {
  pods: async () => [
    {
      metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
      spec: { containers: [] },
      status: {},
    },
  ],
  runningPods: async () => {
    throw new Error('the runtime is unreachable');
  },
  flights: (key: string | undefined) => [key ?? 'all'],
};

/**
 * The number of chunks the endless stream has produced, and whether the server reported the
 * client's disconnect to the stream.
 */
const endless = { given: 0, ended: false };
const chunk = Buffer.alloc(64 * 1024);

const streams: readonly Route[] = [
  {
    path: '/stream/endless',
    methods: ['GET'],
    answer: (_request, signal) => ({ status: 200, contentType: 'text/plain', body: endlessly(signal) }),
  },
  {
    path: '/stream/{kind}',
    methods: ['GET'],
    answer: ({ params }) => ({ status: 200, contentType: 'text/plain', body: twoChunks(params['kind']) }),
  },
];

async function* endlessly(signal: AbortSignal) {
  try {
    while (!signal.aborted) {
      endless.given += 1;
      yield chunk;
    }
  } finally {
    endless.ended = true;
  }
}

async function* twoChunks(kind: string | undefined) {
  yield Buffer.from('one ');
  if (kind === 'broken') throw new Error('the log file was removed');
  yield Buffer.from('two');
}

before(async () => {
  listener = await Listener.open({
    host: '127.0.0.1',
    port: 0,
    routes: [
      ...healthRoutes([{ name: 'syncloop', problem: () => problem }]),
      ...kubeletRoutes(view, registry),
      ...streams,
    ],
    logger: collectLogs(realClock()).logger,
  });
});

after(async () => {
  await listener?.close();
});

async function get(path: string, init: RequestInit = {}) {
  const response = await fetch(`http://127.0.0.1:${listener?.port}${path}`, init);
  return { status: response.status, type: response.headers.get('content-type'), body: await response.text() };
}

test('serves the overall health and each health check', async () => {
  assert.deepEqual(await get('/healthz'), { status: 200, type: 'text/plain; charset=utf-8', body: 'ok' });
  problem = 'sync Loop took longer than expected';
  assert.equal((await get('/healthz')).status, 500);
  assert.match((await get('/healthz/syncloop')).body, /took longer than expected/);
  problem = undefined;
  assert.equal((await get('/healthz/none')).status, 404);
});

test('returns the pods as a PodList', async () => {
  const { status, body } = await get('/pods');
  assert.equal(status, 200);
  const list = JSON.parse(body);
  assert.equal(list.kind, 'PodList');
  assert.equal(list.items[0].metadata.name, 'web');
});

test('returns an error when a handler fails, and keeps serving', async () => {
  assert.deepEqual(await get('/runningpods/'), {
    status: 500,
    type: 'text/plain; charset=utf-8',
    body: 'Internal Error: the runtime is unreachable',
  });
  assert.equal((await get('/healthz')).status, 200);
});

test('rejects an invalid request path and keeps serving', async () => {
  const socket = connect(listener?.port ?? 0, '127.0.0.1');
  socket.write('GET //[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.match(await text(socket), /^HTTP\/1\.1 400 /);
  assert.equal((await get('/pods')).status, 200);
});

test('serves metrics in the Prometheus text format', async () => {
  const { type, body } = await get('/metrics');
  assert.match(type ?? '', /^text\/plain; version=0\.0\.4/);
  assert.match(body, /^kubelet_tests_total 1$/m);
});

test('finds flight recorder timelines by pod', async () => {
  assert.deepEqual(JSON.parse((await get('/debug/flight?pod=web')).body), ['web']);
  assert.deepEqual(JSON.parse((await get('/debug/flight')).body), ['all']);
});

test('rejects unknown paths and unsupported methods', async () => {
  assert.equal((await get('/podsx')).status, 404);
  assert.equal((await get('/pods', { method: 'POST' })).status, 405);
});

test('fails with an error that names the port when the port is in use', async () => {
  const port = listener?.port ?? 0;
  const second = Listener.open({
    host: '127.0.0.1',
    port,
    routes: [],
    logger: collectLogs(realClock()).logger,
  });
  await assert.rejects(second, { code: 'SERVER_LISTEN', message: `Cannot listen on 127.0.0.1:${port}` });
});

test('streams a response body in chunks and disconnects the client when a chunk fails', async () => {
  assert.equal((await get('/stream/whole')).body, 'one two');
  await assert.rejects(get('/stream/broken'));
  assert.equal((await get('/stream/whole')).status, 200);
});

test('produces response chunks no faster than the client reads, and none after the client disconnects', async () => {
  const socket = connect(listener?.port ?? 0, '127.0.0.1');
  socket.pause();
  socket.write('GET /stream/endless HTTP/1.1\r\nHost: x\r\n\r\n');
  let before = -1;
  await until(() => {
    const rests = endless.given > 0 && endless.given === before;
    before = endless.given;
    return rests;
  }, 'the stream waits for its reader');
  assert(endless.given < 1000, `${endless.given} chunks`);
  socket.destroy();
  await until(() => endless.ended, 'the stream is notified');
});
