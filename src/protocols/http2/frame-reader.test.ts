import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Http2FrameReader } from './frame-reader.ts';
import { defaultFrameBytes, frameOf, frameType, Http2Error, settingsFrame } from './frames.ts';

type Read = readonly [type: number, flags: number, streamId: number, payload: string];

function reader(): { readonly frames: Read[]; readonly push: (bytes: Uint8Array) => void } {
  const frames: Read[] = [];
  const one = new Http2FrameReader((type, flags, streamId, bytes, start, end) =>
    frames.push([type, flags, streamId, bytes.toString('hex', start, end)]),
  );
  // Passes all chunks in one buffer, which each chunk overwrites, as the socket does.
  const shared = Buffer.alloc(1 << 20);
  const push = (bytes: Uint8Array) => {
    shared.set(bytes);
    one.push(shared.subarray(0, bytes.length));
    shared.fill(0xee, 0, bytes.length);
  };
  return { frames, push };
}

test('reads the same frames however the bytes are divided into chunks', () => {
  const frame = fc.record({
    type: fc.nat(255),
    flags: fc.nat(255),
    streamId: fc.nat(0x7fff_ffff),
    payload: fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constant(new Uint8Array(defaultFrameBytes).fill(7)),
    ),
  });
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 20_000 })),
      (frames, cuts) => {
        const wire = Buffer.concat([
          settingsFrame([]),
          ...frames.map(({ type, flags, streamId, payload }) => frameOf(type, flags, streamId, payload)),
        ]);
        const { frames: read, push } = reader();
        let at = 0;
        for (const cut of cuts) {
          push(wire.subarray(at, at + cut));
          at += cut;
        }
        push(wire.subarray(Math.min(at, wire.length)));
        assert.deepEqual(read, [
          [frameType.settings, 0, 0, ''],
          ...frames.map(({ type, flags, streamId, payload }) => [
            type,
            flags,
            streamId,
            Buffer.from(payload).toString('hex'),
          ]),
        ]);
      },
    ),
  );
});

test('reads frames that arrive byte by byte', () => {
  const { frames, push } = reader();
  const wire = Buffer.concat([settingsFrame([[1, 0]]), frameOf(0, 1, 5, Buffer.from('abc'))]);
  for (const byte of wire) push(Buffer.from([byte]));
  assert.deepEqual(frames, [
    [4, 0, 0, '000100000000'],
    [0, 1, 5, '616263'],
  ]);
});

test('rejects a too large frame when its header arrives', () => {
  const { push } = reader();
  push(settingsFrame([]));
  assert.throws(
    () => push(Buffer.from('004001000000000001', 'hex')),
    (error) =>
      error instanceof Http2Error && error.reason === 'FRAME_SIZE_ERROR' && /16385 bytes/.test(error.message),
  );
});

test('names the protocol of a peer that does not use HTTP/2', () => {
  assert.throws(
    () => reader().push(Buffer.from('HTTP/1.1 400 Bad Request\r\n')),
    /does not use HTTP\/2: its first bytes are "HTTP\/1.1 "/,
  );
  assert.throws(() => reader().push(frameOf(frameType.ping, 0, 0, Buffer.alloc(8))), /does not use HTTP\/2/);
});

test('reads any bytes as frames or reports a protocol error', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 20 }),
      fc.boolean(),
      (chunks, greets) => {
        const { push } = reader();
        if (greets) push(settingsFrame([]));
        try {
          for (const chunk of chunks) push(chunk);
        } catch (error) {
          assert.ok(error instanceof Http2Error, String(error));
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
