import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { dataFrame, Http2Desk, headersFrame, ok, trailers } from '../../../test/fakes/http2-wire.ts';
import {
  frameFlag,
  frameOf,
  frameType,
  goAwayFrame,
  Http2Error,
  rstStreamFrame,
  settingId,
} from './frames.ts';
import { encodeHeaders } from './hpack-encoder.ts';

const goAway = (lastId: number, code = 0, words = '') => {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastId, 0);
  payload.writeUInt32BE(code, 4);
  return frameOf(frameType.goAway, 0, 0, Buffer.concat([payload, Buffer.from(words)]));
};

async function readyDesk(settings: Readonly<Record<number, number>> = {}, limits = {}): Promise<Http2Desk> {
  const desk = new Http2Desk(limits);
  desk.settings(settings);
  await desk.sent();
  return desk;
}

describe('HTTP/2 connection', () => {
  test("sends its settings and window, and is ready when the peer's settings have arrived", async () => {
    const desk = new Http2Desk();
    const [settings, window, ...rest] = await desk.sent();
    assert.deepEqual(rest, []);
    assert.equal(settings?.type, frameType.settings);
    assert.equal(settings?.payload.toString('hex'), '000100000000000200000000000400080000000600100000');
    assert.deepEqual(
      [window?.type, window?.payload.readUInt32BE()],
      [frameType.windowUpdate, (4 << 20) - 65_535],
    );
    assert.equal(desk.connection.isUsable, false);
    assert.throws(() => desk.ask(), /takes no more requests/);
    desk.settings();
    assert.deepEqual(desk.heard, ['ready']);
    const [ack] = await desk.sent();
    assert.deepEqual([ack?.type, ack?.flags, ack?.payload.length], [frameType.settings, frameFlag.ack, 0]);
  });

  test('replies to pings, but not to ping acknowledgements', async () => {
    const desk = await readyDesk();
    desk.says(frameOf(frameType.ping, 0, 0, Buffer.from('12345678')));
    desk.says(frameOf(frameType.ping, frameFlag.ack, 0, Buffer.from('abcdefgh')));
    const sent = await desk.sent();
    assert.deepEqual(
      sent.map(({ flags, payload }) => [flags, String(payload)]),
      [[frameFlag.ack, '12345678']],
    );
  });

  test('sends the requests of one event loop turn in one write', async () => {
    const desk = await readyDesk();
    desk.ask();
    await desk.sent();
    const before = desk.wire.writes;
    for (let index = 0; index < 20; index++) desk.ask();
    assert.equal((await desk.sent()).length, 40);
    assert.equal(desk.wire.writes, before + 1);
  });

  test('sends protocol replies in one write with the requests of the same event loop turn', async () => {
    const desk = await readyDesk();
    const { stream } = desk.ask();
    await desk.sent();
    const before = desk.wire.writes;
    stream.reset('CANCEL');
    desk.says(frameOf(frameType.ping, 0, 0, Buffer.alloc(8)));
    for (let step = 0; step < 10; step++) await Promise.resolve();
    desk.ask();
    assert.deepEqual(
      (await desk.sent()).map(({ type }) => type),
      [frameType.reset, frameType.ping, frameType.headers, frameType.data],
    );
    assert.equal(desk.wire.writes, before + 1);
  });

  test('ignores unknown frames and priorities', async () => {
    const desk = await readyDesk();
    const { answer } = desk.ask();
    desk.says(frameOf(0xbe, 0xff, 99, Buffer.alloc(100)), frameOf(frameType.priority, 0, 1, Buffer.alloc(5)));
    desk.says(headersFrame(1, [...ok, ...trailers], 'end'));
    assert.deepEqual(answer.ends, [{ is: 'complete' }]);
  });

  test('fails all streams of a broken connection, including waiting ones', async () => {
    const desk = await readyDesk({ [settingId.maxConcurrentStreams]: 1 });
    const [one, two] = [desk.ask(), desk.ask()];
    desk.wire.destroy(new Error('read ECONNRESET'));
    await desk.sent();
    for (const { answer } of [one, two]) {
      assert.equal(answer.ends.length, 1);
      assert.match(String(answer.ends[0]?.is === 'broken' && answer.ends[0].error), /ECONNRESET/);
    }
    assert.deepEqual(desk.heard, ['ready', 'ended']);
  });

  test('closing a connection ends its streams with the given reason and sends GOAWAY', async () => {
    const desk = await readyDesk();
    const { answer } = desk.ask();
    const why = new Error('enough');
    desk.connection.close(why);
    desk.connection.close(new Error('again'));
    assert.deepEqual(answer.ends, [{ is: 'broken', error: why }]);
    assert.deepEqual(desk.errors, [why]);
    assert.ok(desk.wire.destroyed);
    assert.deepEqual((await desk.sent()).at(-1)?.payload, goAwayFrame('NO_ERROR').subarray(9));
  });
});

describe('HTTP/2 request', () => {
  test('sends an HPACK table size update to zero before the first request, and again when the peer changes its settings', async () => {
    const desk = await readyDesk();
    const blocks = async () =>
      (await desk.sent())
        .filter(({ type }) => type === frameType.headers)
        .map(({ payload }) => payload.toString('hex'));
    desk.ask();
    desk.ask();
    assert.deepEqual(await blocks(), ['2004022f61', '04022f61']);
    desk.settings({ [settingId.headerTableSize]: 100 });
    desk.ask();
    assert.deepEqual(await blocks(), ['2004022f61']);
  });

  test('sends long request headers in several frames', async () => {
    const desk = await readyDesk();
    desk.ask('body', [['x', 'y'.repeat(40_000)]]);
    const sent = await desk.sent();
    assert.deepEqual(
      sent.map(({ type, flags }) => [type, flags]),
      [
        [frameType.headers, 0],
        [frameType.continuation, 0],
        [frameType.continuation, frameFlag.endHeaders],
        [frameType.data, frameFlag.endStream],
      ],
    );
    assert.ok(sent.every(({ payload }) => payload.length <= 16_384));
  });

  test("rejects request headers above the peer's limit without sending them", async () => {
    const desk = await readyDesk({ [settingId.maxHeaderListSize]: 100 });
    assert.throws(
      () => desk.ask('', [['x', 'y'.repeat(68)]]),
      /headers have 101 bytes, but the peer accepts at most 100/,
    );
    desk.ask('', [['x', 'y'.repeat(67)]]);
  });

  test('a request waits when the peer limits concurrent streams, and may be aborted while it waits', async () => {
    const desk = await readyDesk({ [settingId.maxConcurrentStreams]: 1 });
    const [one, two, three] = [desk.ask('1'), desk.ask('2'), desk.ask('3')];
    const bodies = async () =>
      (await desk.sent()).filter(({ type }) => type === frameType.data).map(({ payload }) => String(payload));
    assert.deepEqual(await bodies(), ['1']);
    two.stream.reset('CANCEL');
    desk.says(headersFrame(1, ok, 'end'));
    assert.deepEqual(one.answer.ends, [{ is: 'complete' }]);
    assert.deepEqual(await bodies(), ['3']);
    desk.ask('4');
    desk.ask('5');
    desk.settings({ [settingId.maxConcurrentStreams]: 3 });
    assert.deepEqual(await bodies(), ['4', '5']);
    assert.deepEqual([two.answer.ends, three.answer.ends], [[], []]);
  });

  test('a request waits while the peer does not read, so that buffers are bounded', async () => {
    const desk = await readyDesk();
    desk.says(frameOf(frameType.windowUpdate, 0, 0, Buffer.from('7f000000', 'hex')));
    desk.settings({ [settingId.initialWindowSize]: 0x7fff_ffff });
    desk.wire.stall();
    for (let index = 0; index < 200; index++) desk.ask(Buffer.alloc(100_000));
    await desk.sent();
    assert.ok(desk.wire.writableLength < 3 << 20, `${desk.wire.writableLength} bytes wait`);
    desk.wire.flow();
    let bytes = 0;
    for (let sent = await desk.sent(); sent.length > 0; sent = await desk.sent()) {
      for (const frame of sent) if (frame.type === frameType.data) bytes += frame.payload.length;
    }
    assert.equal(bytes, 20_000_000);
  });
});

describe('HTTP/2 response', () => {
  test('delivers headers, body and trailers of a response, and skips interim headers', async () => {
    const desk = await readyDesk();
    const { answer } = desk.ask();
    desk.says(headersFrame(1, [[':status', '100']], 'more'), headersFrame(1, [[':status', '103']], 'more'));
    desk.says(headersFrame(1, ok, 'more'), dataFrame(1, 'one ', 'more'), dataFrame(1, '', 'more'));
    desk.says(dataFrame(1, 'two', 'more'), headersFrame(1, trailers, 'end'));
    assert.deepEqual({ ...answer }, { heads: [ok, trailers], body: 'one two', ends: [{ is: 'complete' }] });
    assert.deepEqual(
      (await desk.sent()).filter(({ type }) => type === frameType.reset),
      [],
    );
  });

  test('accepts a response with padding, priorities and many frames', async () => {
    const desk = await readyDesk();
    const { answer } = desk.ask();
    const block = encodeHeaders([...ok, ['x', 'y'.repeat(100)]]).bytes;
    const head = Buffer.concat([
      Buffer.from([3]),
      Buffer.alloc(5, 1),
      block.subarray(0, 10),
      Buffer.alloc(3),
    ]);
    desk.says(frameOf(frameType.headers, frameFlag.padded | frameFlag.priority, 1, head));
    desk.says(frameOf(frameType.continuation, 0, 1, block.subarray(10, 20)));
    desk.says(frameOf(frameType.continuation, 0, 1, Buffer.alloc(0)));
    desk.says(frameOf(frameType.continuation, frameFlag.endHeaders, 1, block.subarray(20)));
    const body = Buffer.concat([Buffer.from([2]), Buffer.from('body'), Buffer.alloc(2)]);
    desk.says(frameOf(frameType.data, frameFlag.padded | frameFlag.endStream, 1, body));
    assert.deepEqual(answer.heads, [[...ok, ['x', 'y'.repeat(100)]]]);
    assert.deepEqual([answer.body, answer.ends], ['body', [{ is: 'complete' }]]);
  });

  test('stops sending a request whose response is already complete', async () => {
    const desk = await readyDesk();
    const { answer } = desk.ask(Buffer.alloc(100_000));
    desk.says(headersFrame(1, [...ok, ...trailers], 'end'));
    assert.deepEqual(answer.ends, [{ is: 'complete' }]);
    assert.equal(await desk.lastReason('reset'), 'CANCEL');
  });

  test('ends a request whose stream is reset with a known or unknown code', async () => {
    const desk = await readyDesk();
    const [one, two] = [desk.ask(), desk.ask()];
    desk.says(
      rstStreamFrame(1, 'REFUSED_STREAM'),
      frameOf(frameType.reset, 0, 3, Buffer.from('0000ffff', 'hex')),
    );
    assert.deepEqual(one.answer.ends, [{ is: 'reset', reason: 'REFUSED_STREAM' }]);
    assert.deepEqual(two.answer.ends, [{ is: 'reset', reason: 'INTERNAL_ERROR' }]);
    assert.equal(desk.connection.isUsable, true);
  });

  test('ignores the response of a cancelled stream, but still applies its header block to the dynamic table', async () => {
    const desk = await readyDesk();
    const [one, two] = [desk.ask(), desk.ask()];
    one.stream.reset('CANCEL');
    one.stream.reset('CANCEL');
    assert.equal(await desk.lastReason('reset'), 'CANCEL');
    // The first block belongs to the cancelled stream and adds an entry to the table; the second
    // refers to that entry.
    desk.says(frameOf(frameType.headers, frameFlag.endHeaders, 1, Buffer.from('884001610131', 'hex')));
    desk.says(dataFrame(1, 'late', 'end'), rstStreamFrame(1, 'NO_ERROR'));
    desk.says(frameOf(frameType.windowUpdate, 0, 1, Buffer.from('00000001', 'hex')));
    desk.says(
      frameOf(frameType.headers, frameFlag.endHeaders | frameFlag.endStream, 3, Buffer.from('88be', 'hex')),
    );
    assert.deepEqual({ ...one.answer }, { heads: [], body: '', ends: [] });
    assert.deepEqual(two.answer.heads, [[...ok, ['a', '1']]]);
  });
});

describe('HTTP/2 GOAWAY', () => {
  test('after GOAWAY finishes streams in progress and rejects those that the peer has not processed', async () => {
    const desk = await readyDesk({ [settingId.maxConcurrentStreams]: 2 });
    const [one, two, three] = [desk.ask(), desk.ask(), desk.ask()];
    desk.says(goAway(2 ** 31 - 1), goAway(1));
    assert.deepEqual(desk.heard, ['ready', 'leaving']);
    assert.equal(desk.connection.isUsable, false);
    assert.throws(() => desk.ask(), /takes no more requests/);
    for (const { answer } of [two, three]) {
      const [end] = answer.ends;
      assert.ok(
        end?.is === 'broken' && end.error instanceof Http2Error && end.error.reason === 'REFUSED_STREAM',
      );
    }
    assert.equal(desk.wire.destroyed, false);
    desk.says(headersFrame(1, ok, 'end'));
    assert.deepEqual(one.answer.ends, [{ is: 'complete' }]);
    assert.deepEqual(desk.heard, ['ready', 'leaving', 'ended']);
    assert.deepEqual(desk.errors, [undefined]);
    assert.ok(desk.wire.destroyed);
  });

  test('after GOAWAY does not send a waiting request in place of a rejected one', async () => {
    const desk = await readyDesk({ [settingId.maxConcurrentStreams]: 2 });
    const [one, two, three] = [desk.ask(), desk.ask(), desk.ask()];
    await desk.sent();
    desk.says(goAway(1));
    assert.deepEqual(await desk.sent(), []);
    assert.deepEqual(
      [one, two, three].map(({ answer }) => answer.ends.length),
      [0, 1, 1],
    );
    desk.says(goAway(0));
    assert.equal(one.answer.ends.length, 1);
    assert.deepEqual(desk.heard, ['ready', 'leaving', 'ended']);
  });

  test('closes the connection immediately after GOAWAY when no streams are in progress', async () => {
    const desk = await readyDesk();
    desk.says(goAway(0));
    assert.deepEqual(desk.heard, ['ready', 'leaving', 'ended']);
  });

  test("fails streams with the reason of the peer's GOAWAY", async () => {
    const desk = await readyDesk();
    const { answer } = desk.ask();
    desk.says(goAway(1, 11, 'too_many_pings'));
    assert.equal(answer.ends.length, 0);
    desk.wire.destroy();
    await desk.sent();
    assert.match(
      String(answer.ends[0]?.is === 'broken' && answer.ends[0].error),
      /The peer closed the connection: ENHANCE_YOUR_CALM too_many_pings$/,
    );
  });

  test('stops accepting requests when the stream numbers are used up', async () => {
    const desk = await readyDesk({}, { lastStreamId: 3 });
    const [one, two] = [desk.ask(), desk.ask()];
    assert.deepEqual(desk.heard, ['ready', 'leaving']);
    assert.throws(() => desk.ask(), /takes no more requests/);
    desk.says(headersFrame(1, ok, 'end'), headersFrame(3, ok, 'end'));
    assert.deepEqual([one.answer.ends, two.answer.ends], [[{ is: 'complete' }], [{ is: 'complete' }]]);
    assert.deepEqual(desk.heard, ['ready', 'leaving', 'ended']);
  });
});
