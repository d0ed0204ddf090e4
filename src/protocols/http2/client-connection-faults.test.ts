// Protocol violations by the HTTP/2 server: some end the connection, others only the stream.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { dataFrame, Http2Desk, headersFrame, ok, trailers } from '../../../test/fakes/http2-wire.ts';
import {
  frameFlag,
  frameOf,
  frameType,
  Http2Error,
  type Http2Reason,
  pingAckFrame,
  rstStreamFrame,
  settingId,
  settingsFrame,
  windowUpdateFrame,
} from './frames.ts';

const empty = Buffer.alloc(0);
const bytes = (hex: string) => Buffer.from(hex, 'hex');

function readyDesk(): Http2Desk {
  const desk = new Http2Desk();
  desk.settings();
  return desk;
}

const faults: readonly (readonly [string, readonly Buffer[], Http2Reason, RegExp])[] = [
  [
    'data for stream 0',
    [dataFrame(0, 'x', 'more')],
    'PROTOCOL_ERROR',
    /DATA for stream 0, which never began/,
  ],
  [
    'data for a stream that was never opened',
    [dataFrame(5, 'x', 'more')],
    'PROTOCOL_ERROR',
    /DATA for stream 5/,
  ],
  [
    'headers for a stream that the server opens',
    [headersFrame(2, ok, 'more')],
    'PROTOCOL_ERROR',
    /HEADERS for stream 2/,
  ],
  ['RST_STREAM for stream 0', [rstStreamFrame(0, 'CANCEL')], 'PROTOCOL_ERROR', /RST_STREAM for stream 0/],
  [
    'RST_STREAM of a wrong length',
    [frameOf(frameType.reset, 0, 1, Buffer.alloc(5))],
    'FRAME_SIZE_ERROR',
    /RST_STREAM of 5/,
  ],
  [
    'PUSH_PROMISE',
    [frameOf(frameType.pushPromise, frameFlag.endHeaders, 1, bytes('0000000282'))],
    'PROTOCOL_ERROR',
    /PUSH_PROMISE although push is disabled/,
  ],
  [
    'SETTINGS for a stream',
    [frameOf(frameType.settings, 0, 1, empty)],
    'PROTOCOL_ERROR',
    /SETTINGS for stream 1/,
  ],
  [
    'SETTINGS that ends inside a setting',
    [frameOf(frameType.settings, 0, 0, Buffer.alloc(5))],
    'FRAME_SIZE_ERROR',
    /SETTINGS frame of 5 bytes/,
  ],
  [
    'a SETTINGS acknowledgement with a payload',
    [frameOf(frameType.settings, frameFlag.ack, 0, Buffer.alloc(6))],
    'FRAME_SIZE_ERROR',
    /SETTINGS of 6 bytes/,
  ],
  [
    'a setting that enables push',
    [settingsFrame([[settingId.enablePush, 1]])],
    'PROTOCOL_ERROR',
    /ENABLE_PUSH to the invalid value 1/,
  ],
  [
    'a setting with a too large window',
    [settingsFrame([[settingId.initialWindowSize, 2 ** 31]])],
    'FLOW_CONTROL_ERROR',
    /INITIAL_WINDOW/,
  ],
  [
    'a setting with a too small frame size',
    [settingsFrame([[settingId.maxFrameSize, 16_383]])],
    'PROTOCOL_ERROR',
    /MAX_FRAME_SIZE to the invalid value 16383/,
  ],
  [
    'a setting with a too large frame size',
    [settingsFrame([[settingId.maxFrameSize, 2 ** 24]])],
    'PROTOCOL_ERROR',
    /MAX_FRAME_SIZE/,
  ],
  [
    'PING for a stream',
    [frameOf(frameType.ping, 0, 1, Buffer.alloc(8))],
    'PROTOCOL_ERROR',
    /PING for stream 1/,
  ],
  ['a too short PING', [pingAckFrame(Buffer.alloc(7))], 'FRAME_SIZE_ERROR', /PING of 7 bytes instead of 8/],
  [
    'GOAWAY for a stream',
    [frameOf(frameType.goAway, 0, 1, Buffer.alloc(8))],
    'PROTOCOL_ERROR',
    /GOAWAY for stream 1/,
  ],
  [
    'a too short GOAWAY',
    [frameOf(frameType.goAway, 0, 0, Buffer.alloc(4))],
    'FRAME_SIZE_ERROR',
    /GOAWAY of 4 bytes/,
  ],
  [
    'a window update that grants zero bytes',
    [windowUpdateFrame(0, 0)],
    'PROTOCOL_ERROR',
    /window update of zero bytes/,
  ],
  [
    'a window update above the maximum window size',
    [windowUpdateFrame(0, 0x7fff_ffff)],
    'FLOW_CONTROL_ERROR',
    /more than a window can hold/,
  ],
  [
    'WINDOW_UPDATE of a wrong length',
    [frameOf(frameType.windowUpdate, 0, 0, Buffer.alloc(3))],
    'FRAME_SIZE_ERROR',
    /of 3 bytes/,
  ],
  [
    'WINDOW_UPDATE for a stream that was never opened',
    [windowUpdateFrame(9, 1)],
    'PROTOCOL_ERROR',
    /WINDOW_UPDATE for stream 9/,
  ],
  [
    'CONTINUATION without HEADERS',
    [frameOf(frameType.continuation, 4, 1, empty)],
    'PROTOCOL_ERROR',
    /CONTINUATION without HEADERS/,
  ],
  [
    'another frame between the frames of a header block',
    [frameOf(frameType.headers, 0, 1, bytes('88')), pingAckFrame(Buffer.alloc(8))],
    'PROTOCOL_ERROR',
    /between the header frames of stream 1/,
  ],
  [
    'CONTINUATION of another stream',
    [frameOf(frameType.headers, 0, 1, bytes('88')), frameOf(frameType.continuation, 4, 3, empty)],
    'PROTOCOL_ERROR',
    /between the header frames of stream 1/,
  ],
  [
    'endless empty CONTINUATION frames',
    [
      frameOf(frameType.headers, 0, 1, empty),
      ...Array.from({ length: 300 }, () => frameOf(frameType.continuation, 0, 1, empty)),
    ],
    'ENHANCE_YOUR_CALM',
    /headers of more than/,
  ],
  [
    'an endless header block',
    [
      frameOf(frameType.headers, 0, 1, empty),
      ...Array.from({ length: 70 }, () => frameOf(frameType.continuation, 0, 1, Buffer.alloc(16_384))),
    ],
    'ENHANCE_YOUR_CALM',
    /headers of more than/,
  ],
  [
    'padding that is longer than the payload',
    [frameOf(frameType.data, frameFlag.padded, 1, bytes('0500'))],
    'PROTOCOL_ERROR',
    /padding/,
  ],
  [
    'a padded frame without a padding length',
    [frameOf(frameType.headers, frameFlag.padded | 4, 1, empty)],
    'PROTOCOL_ERROR',
    /padding/,
  ],
  [
    'HEADERS with a truncated priority',
    [frameOf(frameType.headers, frameFlag.priority | 4, 1, bytes('88'))],
    'PROTOCOL_ERROR',
    /padding/,
  ],
  [
    'an invalid header block',
    [frameOf(frameType.headers, 4, 1, bytes('ff'))],
    'COMPRESSION_ERROR',
    /Cannot read a header block/,
  ],
  ['a too large frame', [bytes('004001000000000001')], 'FRAME_SIZE_ERROR', /16385 bytes/],
];

describe('ends the HTTP/2 connection and sends the reason in GOAWAY after a protocol violation:', () => {
  for (const [what, frames, reason, message] of faults) {
    test(what, async () => {
      const desk = readyDesk();
      const { answer } = desk.ask();
      await desk.sent();
      desk.says(...frames);
      const [end, ...more] = answer.ends;
      assert.ok(end?.is === 'broken' && end.error instanceof Http2Error, JSON.stringify(end));
      assert.deepEqual(more, []);
      assert.match(end.error.message, message);
      assert.deepEqual(desk.errors, [end.error]);
      assert.ok(desk.wire.destroyed);
      assert.equal(await desk.lastReason('goAway'), reason);
      // Input that arrives after the connection was closed has no effect.
      desk.says(headersFrame(1, ok, 'end'));
      assert.equal(answer.ends.length, 1);
    });
  }

  test('closes the connection of a peer that sends endless pings and does not read the replies', async () => {
    const desk = readyDesk();
    await desk.sent();
    desk.wire.stall();
    for (let left = 1_000_000; left > 0 && desk.errors.length === 0; left--) {
      desk.says(frameOf(frameType.ping, 0, 0, Buffer.alloc(8)));
      if (left % 1_000 === 0) await new Promise(setImmediate);
    }
    assert.match(String(desk.errors[0]), /requests replies but does not read them/);
  });
});

describe('resets only the HTTP/2 stream, not the connection, after a protocol violation on the stream:', () => {
  const huge = 'y'.repeat(2_000);
  const streamFaults: readonly (readonly [string, readonly Buffer[], Http2Reason])[] = [
    ['data before the response headers', [dataFrame(1, 'x', 'more')], 'PROTOCOL_ERROR'],
    ['response headers without :status', [headersFrame(1, trailers, 'end')], 'PROTOCOL_ERROR'],
    ['an invalid :status', [headersFrame(1, [[':status', 'ok']], 'end')], 'PROTOCOL_ERROR'],
    ['interim headers that end the stream', [headersFrame(1, [[':status', '100']], 'end')], 'PROTOCOL_ERROR'],
    [
      'response headers that are sent twice',
      [headersFrame(1, ok, 'more'), headersFrame(1, ok, 'more')],
      'PROTOCOL_ERROR',
    ],
    ['a window update that grants zero bytes', [windowUpdateFrame(1, 0)], 'PROTOCOL_ERROR'],
    [
      'a window update above the maximum window size',
      [windowUpdateFrame(1, 0x7fff_ffff)],
      'FLOW_CONTROL_ERROR',
    ],
    ['too large response headers', [headersFrame(1, [...ok, ['x', huge]], 'end')], 'ENHANCE_YOUR_CALM'],
  ];
  for (const [what, frames, reason] of streamFaults) {
    test(what, async () => {
      const desk = new Http2Desk({ maxHeaderBytes: 2_030 });
      desk.settings();
      const [one, two] = [desk.ask(), desk.ask()];
      await desk.sent();
      desk.says(...frames);
      const [end] = one.answer.ends;
      assert.ok(end?.is === 'broken' && end.error instanceof Http2Error && end.error.reason === reason);
      assert.equal(await desk.lastReason('reset'), reason);
      desk.says(headersFrame(3, ok, 'end'));
      assert.deepEqual(two.answer.ends, [{ is: 'complete' }]);
      assert.equal(desk.connection.isUsable, true);
    });
  }
});

describe('random HTTP/2 input', () => {
  const id = fc.constantFrom(0, 1, 2, 3, 5, 7, 9, 0x7fff_ffff);
  const payload = fc.oneof(
    fc.uint8Array({ maxLength: 20 }),
    fc.constantFrom(
      bytes('88'),
      bytes('8840016101'),
      bytes('00000001'),
      bytes('0000000000000000'),
      Buffer.alloc(16_384),
    ),
  );
  const frame = fc
    .tuple(fc.nat(11), fc.nat(255), id, payload)
    .map(([type, flags, streamId, content]) => frameOf(type, flags, streamId, content));
  const good = fc.constantFrom(
    headersFrame(1, ok, 'more'),
    headersFrame(3, ok, 'more'),
    dataFrame(1, 'abc', 'more'),
    dataFrame(3, 'abc', 'end'),
    headersFrame(1, trailers, 'end'),
    windowUpdateFrame(0, 1_000),
    settingsFrame([[settingId.initialWindowSize, 10]]),
    settingsFrame([[settingId.maxConcurrentStreams, 0]]),
    rstStreamFrame(5, 'CANCEL'),
  );
  const change = fc.tuple(fc.nat(10_000), fc.nat(255));

  test('ends each stream at most once, and throws nothing, for random input', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(good, frame), { maxLength: 30 }),
        fc.array(change, { maxLength: 3 }),
        fc.boolean(),
        (frames, changes, greets) => {
          const desk = new Http2Desk();
          if (greets) desk.settings({ [settingId.maxConcurrentStreams]: 4 });
          const requested = greets ? Array.from({ length: 6 }, () => desk.ask(Buffer.alloc(20_000))) : [];
          const all = Buffer.concat(frames);
          for (const [at, byte] of changes) if (all.length > 0) all[at % all.length] = byte;
          for (let at = 0; at < all.length; at += 1_000) desk.says(all.subarray(at, at + 1_000));
          requested[1]?.stream.reset('CANCEL');
          desk.connection.close(new Error('over'));
          for (const [index, { answer }] of requested.entries()) {
            assert.ok(answer.ends.length === 1 || (index === 1 && answer.ends.length === 0));
          }
          assert.equal(desk.heard.filter((what) => what === 'ended').length, 1);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
