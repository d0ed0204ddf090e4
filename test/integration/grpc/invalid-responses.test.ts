// Responses that violate the gRPC protocol: each is an error with a status code and never a wrong
// result.
import assert from 'node:assert/strict';
import type { ServerHttp2Stream } from 'node:http2';
import { test } from 'node:test';
import { ContainerEventResponse, VersionResponse } from '../../../src/cri/index.ts';
import { grpcFrame } from '../../../src/protocols/grpc/frames.ts';
import type { GrpcCode } from '../../../src/protocols/grpc/index.ts';
import { Relay } from '../../fakes/relay.ts';
import { until } from '../../fakes/until.ts';
import { http2Peer } from './misbehaving-peers.ts';
import { answering, createHarness, failsWith, forever } from './rig.ts';

const grpc = { ':status': 200, 'content-type': 'application/grpc' };
const good = grpcFrame(VersionResponse.encode({ runtimeName: 'odd' }));

/** Responds with these bytes and a gRPC status. */
function answer(stream: ServerHttp2Stream, bytes: Buffer, trailers: Record<string, string>): void {
  stream.respond(grpc, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(bytes);
}

const ok = { 'grpc-status': '0' };

const wrong: readonly (readonly [string, (stream: ServerHttp2Stream) => void, GrpcCode, RegExp])[] = [
  [
    'a page of another server',
    (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
    'UNIMPLEMENTED',
    /HTTP status 404/,
  ],
  [
    'a server that is overloaded',
    (stream) => stream.respond({ ':status': 503 }, { endStream: true }),
    'UNAVAILABLE',
    /HTTP status 503/,
  ],
  [
    'a page without a status',
    (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'text/html' });
      stream.end('<html>');
    },
    'INTERNAL',
    /ended without a status|compressed/,
  ],
  [
    'no status at all',
    (stream) => answer(stream, good, { other: 'x' }),
    'INTERNAL',
    /ended without a status/,
  ],
  ['no answer', (stream) => answer(stream, Buffer.alloc(0), ok), 'INTERNAL', /returned 0 responses/],
  [
    'an immediate OK',
    (stream) => stream.respond({ ...grpc, ...ok }, { endStream: true }),
    'INTERNAL',
    /returned 0 responses/,
  ],
  [
    'two answers',
    (stream) => answer(stream, Buffer.concat([good, good]), ok),
    'INTERNAL',
    /returned 2 responses/,
  ],
  [
    'half a response',
    (stream) => answer(stream, good.subarray(0, -1), ok),
    'INTERNAL',
    /ended inside a response message/,
  ],
  [
    'half a frame',
    (stream) => answer(stream, good.subarray(0, 3), ok),
    'INTERNAL',
    /ended inside a response message/,
  ],
  [
    'bytes that are not a message',
    (stream) => answer(stream, grpcFrame(Buffer.from([0x0a, 0x7f])), ok),
    'INTERNAL',
    /protobuf/,
  ],
  [
    'an unknown status code',
    (stream) => answer(stream, good, { 'grpc-status': '77', 'grpc-message': 'x' }),
    'UNKNOWN',
    /^x$/,
  ],
  ['a non-numeric status code', (stream) => answer(stream, good, { 'grpc-status': 'OK' }), 'UNKNOWN', /^$/],
  ['a reset', (stream) => stream.close(2), 'UNAVAILABLE', /INTERNAL_ERROR/],
  ['a refusal', (stream) => stream.close(7), 'UNAVAILABLE', /REFUSED_STREAM/],
  ['a server-side cancel', (stream) => stream.close(8), 'UNAVAILABLE', /closed during/],
  ['ENHANCE_YOUR_CALM', (stream) => stream.close(11), 'RESOURCE_EXHAUSTED', /ENHANCE_YOUR_CALM/],
];

for (const [what, respond, code, message] of wrong) {
  test(`the response ${what} fails the call with ${code} and keeps the connection`, async () => {
    await using the = createHarness();
    let calls = 0;
    await using peer = await http2Peer(the.path, (stream) => {
      if (calls++ === 0) respond(stream);
      else answer(stream, good, ok);
    });
    await assert.rejects(the.client.version({}, forever), failsWith(code, message));
    assert.equal((await the.client.version({}, forever)).runtimeName, 'odd');
    assert.equal(peer.sessions.length, 1);
  });
}

test('fails a call whose response comes with an error status', async () => {
  await using the = createHarness();
  await using _peer = await http2Peer(the.path, (stream) =>
    answer(stream, good, { 'grpc-status': '5', 'grpc-message': 'gone%20away' }),
  );
  await assert.rejects(the.client.version({}, forever), failsWith('NOT_FOUND', /^gone away$/));
});

test('never reports a stream as complete when the connection is cut before all messages were read, even if its trailers had arrived', async () => {
  await using the = createHarness();
  const event = grpcFrame(ContainerEventResponse.encode({ containerId: 'x'.repeat(64 << 10) }));
  await using _peer = await http2Peer(the.other('server.sock'), (stream) =>
    answer(stream, Buffer.concat(Array.from({ length: 15 }, () => event)), ok),
  );
  await using relay = new Relay(the.other('server.sock'));
  await relay.listen(the.path);
  const events = the.client.getContainerEvents({}, forever)[Symbol.asyncIterator]();
  await events.next();
  // Waits until everything including trailers has reached the client, which reads only what fits
  // its flow-control window.
  await new Promise((resolve) => setTimeout(resolve, 300));
  relay.cut();
  await until('the connection is closed', () => relay.open === 0);
  let read = 1;
  let failure: unknown;
  try {
    while (!(await events.next()).done) read++;
  } catch (error) {
    failure = error;
  }
  assert.ok(read < 15, 'the client read more than its window');
  failsWith('UNAVAILABLE')(failure);
});

test('a call started while the connection ends either succeeds or fails with UNAVAILABLE', async () => {
  await using the = createHarness();
  await the.serve(answering, the.other('server.sock'));
  await using relay = new Relay(the.other('server.sock'));
  await relay.listen(the.path);
  const allowed = (call: Promise<unknown>) => call.then(() => true, failsWith('UNAVAILABLE'));
  for (let round = 0; round < 100; round++) {
    await the.client.version({}, forever);
    const calls = [allowed(the.client.version({}, forever))];
    relay.cut();
    for (let step = 0; step < 5; step++) {
      calls.push(allowed(the.client.version({}, forever)));
      await new Promise((resolve) => (step % 2 === 0 ? setImmediate(resolve) : process.nextTick(resolve)));
    }
    await Promise.all(calls);
  }
});
