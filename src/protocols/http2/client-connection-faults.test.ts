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
    'data for no stream',
    [dataFrame(0, 'x', 'more')],
    'PROTOCOL_ERROR',
    /DATA for stream 0, which never began/,
  ],
  ['data for a stream that never began', [dataFrame(5, 'x', 'more')], 'PROTOCOL_ERROR', /DATA for stream 5/],
  [
    'headers for a stream of its own',
    [headersFrame(2, ok, 'more')],
    'PROTOCOL_ERROR',
    /HEADERS for stream 2/,
  ],
  ['a reset of no stream', [rstStreamFrame(0, 'CANCEL')], 'PROTOCOL_ERROR', /RST_STREAM for stream 0/],
  [
    'a reset of a wrong length',
    [frameOf(frameType.reset, 0, 1, Buffer.alloc(5))],
    'FRAME_SIZE_ERROR',
    /RST_STREAM of 5/,
  ],
  [
    'a push',
    [frameOf(frameType.pushPromise, frameFlag.endHeaders, 1, bytes('0000000282'))],
    'PROTOCOL_ERROR',
    /PUSH_PROMISE although push is disabled/,
  ],
  [
    'settings of a stream',
    [frameOf(frameType.settings, 0, 1, empty)],
    'PROTOCOL_ERROR',
    /SETTINGS for stream 1/,
  ],
  [
    'half a setting',
    [frameOf(frameType.settings, 0, 0, Buffer.alloc(5))],
    'FRAME_SIZE_ERROR',
    /settings of 5 bytes/,
  ],
  [
    'an acknowledgement with content',
    [frameOf(frameType.settings, frameFlag.ack, 0, Buffer.alloc(6))],
    'FRAME_SIZE_ERROR',
    /SETTINGS of 6 bytes/,
  ],
  [
    'pushes allowed',
    [settingsFrame([[settingId.enablePush, 1]])],
    'PROTOCOL_ERROR',
    /ENABLE_PUSH to the invalid value 1/,
  ],
  [
    'a window too large',
    [settingsFrame([[settingId.initialWindowSize, 2 ** 31]])],
    'FLOW_CONTROL_ERROR',
    /INITIAL_WINDOW/,
  ],
  [
    'frames too small',
    [settingsFrame([[settingId.maxFrameSize, 16_383]])],
    'PROTOCOL_ERROR',
    /MAX_FRAME_SIZE to the invalid value 16383/,
  ],
  [
    'frames too large',
    [settingsFrame([[settingId.maxFrameSize, 2 ** 24]])],
    'PROTOCOL_ERROR',
    /MAX_FRAME_SIZE/,
  ],
  [
    'a ping of a stream',
    [frameOf(frameType.ping, 0, 1, Buffer.alloc(8))],
    'PROTOCOL_ERROR',
    /PING for stream 1/,
  ],
  ['a short ping', [pingAckFrame(Buffer.alloc(7))], 'FRAME_SIZE_ERROR', /PING of 7 bytes instead of 8/],
  [
    'a good-bye of a stream',
    [frameOf(frameType.goAway, 0, 1, Buffer.alloc(8))],
    'PROTOCOL_ERROR',
    /GOAWAY for stream 1/,
  ],
  [
    'a short good-bye',
    [frameOf(frameType.goAway, 0, 0, Buffer.alloc(4))],
    'FRAME_SIZE_ERROR',
    /GOAWAY of 4 bytes/,
  ],
  ['a grant of nothing', [windowUpdateFrame(0, 0)], 'PROTOCOL_ERROR', /window update of zero bytes/],
  [
    'a grant past all windows',
    [windowUpdateFrame(0, 0x7fff_ffff)],
    'FLOW_CONTROL_ERROR',
    /more than a window can hold/,
  ],
  [
    'a grant of a wrong length',
    [frameOf(frameType.windowUpdate, 0, 0, Buffer.alloc(3))],
    'FRAME_SIZE_ERROR',
    /of 3 bytes/,
  ],
  [
    'a grant to a stream that never began',
    [windowUpdateFrame(9, 1)],
    'PROTOCOL_ERROR',
    /WINDOW_UPDATE for stream 9/,
  ],
  [
    'a continuation of nothing',
    [frameOf(frameType.continuation, 4, 1, empty)],
    'PROTOCOL_ERROR',
    /CONTINUATION without HEADERS/,
  ],
  [
    'something between the headers',
    [frameOf(frameType.headers, 0, 1, bytes('88')), pingAckFrame(Buffer.alloc(8))],
    'PROTOCOL_ERROR',
    /between the header frames of stream 1/,
  ],
  [
    'a continuation of another stream',
    [frameOf(frameType.headers, 0, 1, bytes('88')), frameOf(frameType.continuation, 4, 3, empty)],
    'PROTOCOL_ERROR',
    /between the header frames of stream 1/,
  ],
  [
    'continuations without end',
    [
      frameOf(frameType.headers, 0, 1, empty),
      ...Array.from({ length: 300 }, () => frameOf(frameType.continuation, 0, 1, empty)),
    ],
    'ENHANCE_YOUR_CALM',
    /headers of more than/,
  ],
  [
    'headers without end',
    [
      frameOf(frameType.headers, 0, 1, empty),
      ...Array.from({ length: 70 }, () => frameOf(frameType.continuation, 0, 1, Buffer.alloc(16_384))),
    ],
    'ENHANCE_YOUR_CALM',
    /headers of more than/,
  ],
  [
    'more padding than frame',
    [frameOf(frameType.data, frameFlag.padded, 1, bytes('0500'))],
    'PROTOCOL_ERROR',
    /padding/,
  ],
  [
    'padding without a length',
    [frameOf(frameType.headers, frameFlag.padded | 4, 1, empty)],
    'PROTOCOL_ERROR',
    /padding/,
  ],
  [
    'a priority cut short',
    [frameOf(frameType.headers, frameFlag.priority | 4, 1, bytes('88'))],
    'PROTOCOL_ERROR',
    /padding/,
  ],
  [
    'headers that are none',
    [frameOf(frameType.headers, 4, 1, bytes('ff'))],
    'COMPRESSION_ERROR',
    /Cannot read a header block/,
  ],
  ['a frame that is too large', [bytes('004001000000000001')], 'FRAME_SIZE_ERROR', /16385 bytes/],
];

describe('ends the HTTP/2 connection with the reason for', () => {
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

  test('endless pings whose replies the peer does not read', async () => {
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

describe('ends only the HTTP/2 stream for', () => {
  const huge = 'y'.repeat(2_000);
  const streamFaults: readonly (readonly [string, readonly Buffer[], Http2Reason])[] = [
    ['data before its head', [dataFrame(1, 'x', 'more')], 'PROTOCOL_ERROR'],
    ['a head without a status', [headersFrame(1, trailers, 'end')], 'PROTOCOL_ERROR'],
    ['a status that is none', [headersFrame(1, [[':status', 'ok']], 'end')], 'PROTOCOL_ERROR'],
    ['an interim head that is the last', [headersFrame(1, [[':status', '100']], 'end')], 'PROTOCOL_ERROR'],
    ['headers in the middle', [headersFrame(1, ok, 'more'), headersFrame(1, ok, 'more')], 'PROTOCOL_ERROR'],
    ['a grant of nothing', [windowUpdateFrame(1, 0)], 'PROTOCOL_ERROR'],
    ['a grant past all windows', [windowUpdateFrame(1, 0x7fff_ffff)], 'FLOW_CONTROL_ERROR'],
    ['headers that are too large', [headersFrame(1, [...ok, ['x', huge]], 'end')], 'ENHANCE_YOUR_CALM'],
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
