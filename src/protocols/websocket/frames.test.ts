import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type WebSocketPiece, WebSocketReader, webSocketFrame } from './frames.ts';

/** Encodes a masked frame, as clients send them. */
function clientFrame(opcode: number, fin: boolean, payload: Uint8Array, mask: Uint8Array): Buffer {
  const [first, length] = [(fin ? 0x80 : 0) | opcode, payload.length];
  const head =
    length < 126
      ? Buffer.from([first, 0x80 | length])
      : length < 65_536
        ? Buffer.from([first, 0x80 | 126, length >> 8, length & 0xff])
        : Buffer.from([
            first,
            0x80 | 127,
            0,
            0,
            0,
            0,
            length >>> 24,
            (length >> 16) & 0xff,
            (length >> 8) & 0xff,
            length & 0xff,
          ]);
  return Buffer.concat([head, mask, payload.map((byte, index) => byte ^ (mask[index & 3] ?? 0))]);
}

function read(wire: Buffer, step: number): WebSocketPiece[] {
  const reader = new WebSocketReader();
  const pieces: WebSocketPiece[] = [];
  for (let at = 0; at < wire.length; at += step) pieces.push(...reader.push(wire.subarray(at, at + step)));
  return pieces;
}

/** Joins the pieces of each message. */
function messages(pieces: readonly WebSocketPiece[]): Buffer[] {
  const all: Buffer[] = [];
  for (const piece of pieces) {
    if (piece.kind !== 'message') continue;
    if (piece.first) all.push(piece.bytes);
    else all.push(Buffer.concat([all.pop() ?? Buffer.alloc(0), piece.bytes]));
  }
  return all;
}

const mask = fc.uint8Array({ minLength: 4, maxLength: 4 });
const payload = fc.uint8Array({ maxLength: 400 });

test('decodes WebSocket messages however they are divided into frames and chunks', () => {
  const message = fc.array(fc.tuple(payload, mask), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 5 }), fc.integer({ min: 1, max: 500 }), (all, step) => {
      const wire = all.flatMap((parts) =>
        parts.map(([bytes, key], index) =>
          clientFrame(index === 0 ? 2 : 0, index === parts.length - 1, bytes, key),
        ),
      );
      const whole = all.map((parts) => Buffer.concat(parts.map(([bytes]) => bytes)));
      assert.deepEqual(messages(read(Buffer.concat(wire), step)), whole);
    }),
  );
});

test('delivers long WebSocket messages in pieces as they arrive', () => {
  const bytes = Buffer.alloc(70_000, 'z');
  assert.deepEqual(messages(read(clientFrame(2, true, bytes, Buffer.from([1, 2, 3, 4])), 1000)), [bytes]);
});

test('accepts control frames between the frames of a message', () => {
  const key = Buffer.from([9, 8, 7, 6]);
  const wire = [
    clientFrame(2, false, Buffer.from('a'), key),
    clientFrame(9, true, Buffer.from('ping'), key),
    clientFrame(0, true, Buffer.from('b'), key),
    clientFrame(8, true, Buffer.from([3, 232]), key),
  ];
  const pieces = read(Buffer.concat(wire), 3);
  assert.deepEqual(messages(pieces).map(String), ['ab']);
  assert.deepEqual(
    pieces.filter(({ kind }) => kind !== 'message').map(({ kind }) => kind),
    ['ping', 'close'],
  );
});

test('decodes or rejects any bytes as WebSocket frames', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 })), (chunks) => {
      const reader = new WebSocketReader();
      try {
        for (const chunk of chunks) for (const piece of reader.push(chunk)) assert.ok(piece.kind);
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'WEBSOCKET_MALFORMED');
      }
    }),
  );
});

for (const [what, wire] of [
  ['what is not masked', [0x82, 0x01, 0x61]],
  ['reserved bits', [0xc2, 0x80, 0, 0, 0, 0]],
  ['an unknown opcode', [0x83, 0x80, 0, 0, 0, 0]],
  ['a continuation of nothing', [0x80, 0x80, 0, 0, 0, 0]],
  ['a control frame in parts', [0x09, 0x80, 0, 0, 0, 0]],
  ['a long control frame', [0x89, 0xfe, 0, 200]],
  ['a length beyond reason', [0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]],
] as const) {
  test(`rejects malformed WebSocket frames: ${what}`, () => {
    assert.throws(() => [...new WebSocketReader().push(Uint8Array.from(wire))], {
      code: 'WEBSOCKET_MALFORMED',
    });
  });
}

test('encodes complete messages without mask', () => {
  assert.deepEqual([...webSocketFrame('binary', Buffer.of(1), Buffer.from('a'))], [0x82, 2, 1, 0x61]);
  assert.deepEqual([...webSocketFrame('ping')], [0x89, 0]);
  assert.deepEqual([...webSocketFrame('binary', Buffer.alloc(300)).subarray(0, 4)], [0x82, 126, 1, 44]);
  assert.deepEqual(
    [...webSocketFrame('binary', Buffer.alloc(70_000)).subarray(0, 10)],
    [0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70],
  );
});
