import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  dataHead,
  FrameReader,
  goAwayFrame,
  pingFrame,
  resetFrame,
  type SpdyPiece,
  synStreamFrame,
} from './frames.ts';

/** Pieces of one data frame joined, as they may come in any number. */
function read(bytes: Buffer, cuts: readonly number[]): SpdyPiece[] {
  const reader = new FrameReader();
  const pieces: SpdyPiece[] = [];
  let at = 0;
  for (const cut of [
    ...cuts.map((each) => each % (bytes.length + 1)).toSorted((a, b) => a - b),
    bytes.length,
  ]) {
    for (const piece of reader.push(bytes.subarray(at, cut))) join(pieces, piece);
    at = cut;
  }
  return pieces;
}

function join(pieces: SpdyPiece[], piece: SpdyPiece): void {
  const last = pieces.at(-1);
  if (piece.kind === 'data' && last?.kind === 'data' && last.streamId === piece.streamId && !last.fin) {
    pieces[pieces.length - 1] = { ...piece, bytes: Buffer.concat([last.bytes, piece.bytes]) };
  } else {
    pieces.push(piece);
  }
}

const streamId = fc.integer({ min: 1, max: 0x7fff_ffff });
const sent = fc.oneof(
  fc
    .record({
      streamId,
      bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((each) => Buffer.from(each)),
    })
    .map(({ streamId: id, bytes }) => ({
      wire: Buffer.concat([dataHead(id, bytes.length, 'fin'), bytes]),
      piece: { kind: 'data', streamId: id, bytes, fin: true } as SpdyPiece,
    })),
  fc.record({ streamId, status: fc.integer({ min: 0, max: 11 }) }).map(({ streamId: id, status }) => ({
    wire: resetFrame(id, status),
    piece: { kind: 'reset', streamId: id, status } as SpdyPiece,
  })),
  fc
    .integer({ min: 0, max: 0xffff_ffff })
    .map((id) => ({ wire: pingFrame(id), piece: { kind: 'ping', id } as SpdyPiece })),
  streamId.map((id) => ({
    wire: synStreamFrame(id, Buffer.from('headers')),
    piece: { kind: 'opened', streamId: id } as SpdyPiece,
  })),
  fc.constant({ wire: goAwayFrame(0), piece: { kind: 'go-away' } as SpdyPiece }),
);

test('what was written is read again, however the network cuts it', () => {
  fc.assert(
    fc.property(fc.array(sent), fc.array(fc.nat()), (frames, cuts) => {
      const wire = Buffer.concat(frames.map((each) => each.wire));
      assert.deepEqual(
        read(wire, cuts),
        frames.map((each) => each.piece),
      );
    }),
  );
});

test('any bytes at all are read or refused, and nothing is kept of them beyond a control frame', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (chunks) => {
      const reader = new FrameReader();
      try {
        for (const chunk of chunks) for (const piece of reader.push(chunk)) assert.ok(piece.kind);
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'SPDY_MALFORMED');
      }
    }),
  );
});

test('a data frame of the greatest length is handed on as it comes', () => {
  const reader = new FrameReader();
  assert.deepEqual([...reader.push(dataHead(1, 0xff_ffff, 'fin'))], []);
  const [piece] = reader.push(Buffer.from('abc'));
  assert.deepEqual(piece, { kind: 'data', streamId: 1, bytes: Buffer.from('abc'), fin: false });
});

for (const [what, wire] of [
  ['a control frame that announces too much', Buffer.from([0x80, 3, 0, 2, 0, 0xff, 0xff, 0xff])],
  ['another version', Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])],
  ['a control frame without what it must hold', Buffer.from([0x80, 3, 0, 6, 0, 0, 0, 0])],
] as const) {
  test(`${what} is refused`, () => {
    assert.throws(() => [...new FrameReader().push(wire)], { code: 'SPDY_MALFORMED' });
  });
}
