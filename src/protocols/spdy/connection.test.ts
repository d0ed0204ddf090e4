import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { SpdyConnection } from './connection.ts';
import { dataHead, pingFrame, type SpdyFrame, SpdyFrameReader, spdyResetFrame } from './frames.ts';

/**
 * The server side of a socket: what the connection writes is recorded, and the test provides what
 * the connection reads.
 */
class Wire extends Duplex {
  readonly sent: SpdyFrame[] = [];
  readonly #reader = new SpdyFrameReader();
  stalled: (() => void) | undefined;
  reads = 0;

  override _read(): void {
    this.reads += 1;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent.push(...this.#reader.push(chunk));
    done();
  }

  says(...frames: readonly Buffer[]): void {
    for (const frame of frames) this.push(frame);
  }
}

function reply(streamId: number): Buffer {
  return Buffer.from([0x80, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, streamId]);
}

function data(streamId: number, words: string, end: 'fin' | 'more' = 'more'): Buffer {
  return Buffer.concat([dataHead(streamId, words.length, end), Buffer.from(words)]);
}

function open() {
  const wire = new Wire();
  return { wire, connection: new SpdyConnection(wire, Buffer.alloc(0)) };
}

test('SPDY streams transfer data in both directions and end each direction separately', async () => {
  const { wire, connection } = open();
  const stream = connection.open({ streamType: 'data' });
  stream.end('to you');
  wire.says(reply(1), data(1, 'to '), data(1, 'me', 'fin'));
  assert.equal(await text(stream), 'to me');
  assert.deepEqual(
    wire.sent.map((piece) => (piece.kind === 'data' ? [String(piece.bytes), piece.fin] : piece.kind)),
    ['opened', ['to you', false], ['', true]],
  );
});

test('after a reset by the server, an accepted SPDY stream delivers the data received before the reset and then ends', async () => {
  const { wire, connection } = open();
  const stream = connection.open({ streamType: 'stdout' });
  wire.says(reply(1), data(1, 'last words'), spdyResetFrame(1, 5));
  assert.equal(await text(stream), 'last words');
  assert(!stream.destroyed || stream.errored === null);
});

test('a reset before the reply rejects the SPDY stream', async () => {
  const { wire, connection } = open();
  const stream = connection.open({ streamType: 'stdin' });
  wire.says(spdyResetFrame(1, 3));
  await assert.rejects(text(stream), { code: 'SPDY_REFUSED' });
});

test('a broken SPDY connection fails incomplete streams and rejects new ones', async () => {
  const { wire, connection } = open();
  const finished = connection.open({ streamType: 'error' });
  const broken = connection.open({ streamType: 'stdout' });
  wire.says(reply(1), reply(3), data(1, 'status', 'fin'), data(3, 'half'));
  wire.push(null);
  assert.equal(await text(finished), 'status');
  await assert.rejects(text(broken), { code: 'STREAM_BROKEN' });
  assert.throws(() => connection.open({ streamType: 'late' }), { code: 'STREAM_BROKEN' });
});

test('closes the SPDY connection with the reason after malformed input', async () => {
  const { wire, connection } = open();
  const stream = connection.open({ streamType: 'stdout' });
  wire.says(Buffer.from([0x80, 9, 0, 0, 0, 0, 0, 0]));
  await assert.rejects(text(stream), { code: 'SPDY_MALFORMED' });
  assert(wire.destroyed);
});

test('replies to pings of the server, and rejects streams that the server opens', async () => {
  const { wire } = open();
  wire.says(
    pingFrame(2),
    pingFrame(1),
    Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]),
  );
  await once(wire, 'data');
  await new Promise(setImmediate);
  assert.deepEqual(wire.sent, [
    { kind: 'ping', id: 2 },
    { kind: 'reset', streamId: 2, status: 3 },
  ]);
});

test('pauses the SPDY connection while one of its streams is not read', async () => {
  const { wire, connection } = open();
  const stream = connection.open({ streamType: 'stdout' });
  const chunk = 'x'.repeat(100_000);
  wire.says(reply(1), data(1, chunk));
  await new Promise(setImmediate);
  assert(wire.isPaused());
  wire.says(data(1, chunk, 'fin'));
  assert.equal((await text(stream)).length, 200_000);
  assert(!wire.isPaused());
});

test('resets an aborted SPDY stream', async () => {
  const { wire, connection } = open();
  const stream = connection.open({ streamType: 'stdout' });
  wire.says(reply(1));
  stream.destroy();
  await new Promise(setImmediate);
  assert.deepEqual(wire.sent.at(-1), { kind: 'reset', streamId: 1, status: 5 });
});
