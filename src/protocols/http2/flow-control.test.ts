import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { dataFrame, Http2Desk, headersFrame, ok } from '../../../test/fakes/http2-wire.ts';
import { ReceiveWindow } from './flow-control.ts';
import { frameFlag, frameType, settingId, windowUpdateFrame } from './frames.ts';

describe('HTTP/2 sending', () => {
  test('a request larger than the windows waits for window updates of stream and connection', async () => {
    const desk = new Http2Desk();
    desk.settings({ [settingId.initialWindowSize]: 10 });
    const { stream } = desk.ask(Buffer.alloc(100_000, 'z'));
    const sizes = async () =>
      (await desk.sent()).filter(({ type }) => type === frameType.data).map(({ payload }) => payload.length);
    assert.deepEqual(await sizes(), [10]);
    desk.says(windowUpdateFrame(0, 5));
    assert.deepEqual(await sizes(), []);
    desk.says(windowUpdateFrame(1, 99_000));
    assert.deepEqual(await sizes(), [16_384, 16_384, 16_384, 16_378]);
    desk.says(windowUpdateFrame(0, 1_000_000));
    assert.deepEqual(await sizes(), [16_384, 16_384, 702]);
    // After the window was reduced, no data is sent before the peer has granted a positive window
    // again.
    desk.settings({ [settingId.initialWindowSize]: 0 });
    desk.says(windowUpdateFrame(1, 10));
    assert.deepEqual(await sizes(), []);
    desk.settings({ [settingId.initialWindowSize]: 1_000 });
    const last = (await desk.sent()).filter(({ type }) => type === frameType.data);
    assert.deepEqual(
      last.map(({ payload, flags }) => [payload.length, flags]),
      [[990, frameFlag.endStream]],
    );
    assert.equal(stream.sentBytes, 100_000);
  });

  test('a stream that waits for its window does not block others', async () => {
    const desk = new Http2Desk();
    desk.settings({ [settingId.initialWindowSize]: 10 });
    desk.ask(Buffer.alloc(20));
    desk.ask(Buffer.alloc(10));
    const sent = (await desk.sent()).filter(({ type }) => type === frameType.data);
    assert.deepEqual(
      sent.map(({ streamId, flags }) => [streamId, flags]),
      [
        [1, 0],
        [3, frameFlag.endStream],
      ],
    );
  });

  test('never sends more than the peer granted, and finally sends all data in order', async () => {
    const step = fc.oneof(
      fc.record({ is: fc.constant('ask' as const), bytes: fc.integer({ min: 1, max: 60_000 }) }),
      fc.record({
        is: fc.constant('grant' as const),
        to: fc.nat(5),
        bytes: fc.integer({ min: 1, max: 40_000 }),
      }),
      fc.record({ is: fc.constant('resize' as const), bytes: fc.nat(50_000) }),
      fc.record({ is: fc.constant('give-up' as const), which: fc.nat(5) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const desk = new Http2Desk();
        desk.settings();
        let initial = 65_535;
        let connection = 65_535;
        const requested: {
          body: Buffer;
          sent: Buffer[];
          granted: number;
          isOver: boolean;
          giveUp: () => void;
        }[] = [];
        const total = (sent: readonly Buffer[]) => sent.reduce((sum, part) => sum + part.length, 0);
        const check = async () => {
          for (const frame of await desk.sent()) {
            if (frame.type !== frameType.data) continue;
            const one = requested[(frame.streamId - 1) / 2];
            assert.ok(one !== undefined && !one.isOver);
            one.sent.push(frame.payload);
            connection -= frame.payload.length;
            assert.ok(connection >= 0, 'past the window of the connection');
            assert.ok(total(one.sent) <= initial + one.granted, 'past the window of the stream');
            assert.equal((frame.flags & frameFlag.endStream) !== 0, total(one.sent) === one.body.length);
          }
        };
        for (const act of steps) {
          const one = requested[act.is === 'give-up' ? act.which : act.is === 'grant' ? act.to - 1 : -1];
          if (act.is === 'ask') {
            const body = Buffer.from(Array.from({ length: act.bytes }, (_, index) => index % 251));
            const { stream } = desk.ask(body);
            requested.push({
              body,
              sent: [],
              granted: 0,
              isOver: false,
              giveUp: () => stream.reset('CANCEL'),
            });
          } else if (act.is === 'resize') {
            initial = act.bytes;
            desk.settings({ [settingId.initialWindowSize]: initial });
          } else if (act.is === 'give-up') {
            one?.giveUp();
          } else if (act.to === 0) {
            connection += act.bytes;
            desk.says(windowUpdateFrame(0, act.bytes));
          } else if (one !== undefined) {
            one.granted += act.bytes;
            desk.says(windowUpdateFrame(act.to * 2 - 1, act.bytes));
          }
          await check();
          if (act.is === 'give-up' && one !== undefined) one.isOver = true;
        }
        initial = 1 << 20;
        connection += 1 << 25;
        desk.settings({ [settingId.initialWindowSize]: initial });
        desk.says(windowUpdateFrame(0, 1 << 25));
        await check();
        for (const { body, sent, isOver } of requested)
          if (!isOver) assert.ok(Buffer.concat(sent).equals(body));
      }),
      { numRuns: 150 },
    );
  });
});

describe('HTTP/2 receiving', () => {
  const chunk = 'x'.repeat(16_384);
  const grants = async (desk: Http2Desk, streamId: number) =>
    (await desk.sent())
      .filter((frame) => frame.type === frameType.windowUpdate && frame.streamId === streamId)
      .reduce((sum, { payload }) => sum + payload.readUInt32BE(), 0);

  function answering(): Http2Desk & { readonly asked: ReturnType<Http2Desk['ask']> } {
    const desk = new Http2Desk({ streamWindowBytes: 65_536, connectionWindowBytes: 131_072 });
    desk.settings();
    const requested = desk.ask();
    desk.says(headersFrame(1, ok, 'more'));
    return Object.assign(desk, { asked: requested });
  }

  test('a fast reader receives data without pauses', async () => {
    const desk = answering();
    await desk.sent();
    let granted = 0;
    for (let index = 0; index < 100; index++) {
      desk.says(dataFrame(1, chunk, 'more'));
      granted += await grants(desk, 1);
    }
    assert.ok(granted >= 99 * 16_384 - 65_536, `${granted}`);
    assert.equal(desk.asked.answer.body.length, 100 * 16_384);
  });

  test('a slow reader pauses only the sender of its stream', async () => {
    const desk = answering();
    await desk.sent();
    desk.asked.stream.pause();
    for (let index = 0; index < 4; index++) desk.says(dataFrame(1, chunk, 'more'));
    const sent = (await desk.sent()).filter(({ type }) => type === frameType.windowUpdate);
    assert.deepEqual(
      sent.map(({ streamId }) => streamId),
      [0],
    );
    desk.asked.stream.resume();
    assert.equal(await grants(desk, 1), 65_536);
  });

  test('closes the connection when the peer exceeds the window', async () => {
    const desk = answering();
    desk.asked.stream.pause();
    for (let index = 0; index < 5; index++) desk.says(dataFrame(1, chunk, 'more'));
    assert.match(String(desk.errors[0]), /16384 bytes more than its window allows/);
    assert.equal(await desk.lastReason('goAway'), 'FLOW_CONTROL_ERROR');
  });

  test('grants the connection window again for data of a closed stream', async () => {
    const desk = answering();
    desk.asked.stream.reset('CANCEL');
    await desk.sent();
    let granted = 0;
    for (let index = 0; index < 40; index++) {
      desk.says(dataFrame(1, chunk, 'more'));
      granted += await grants(desk, 0);
    }
    assert.deepEqual(desk.errors, []);
    assert.equal(granted, 40 * 16_384);
  });

  test('sends a window update for each half of the window', async () => {
    const window = new ReceiveWindow(100);
    window.receive(49);
    assert.equal(window.grant(), 0);
    window.receive(1);
    assert.equal(window.grant(), 50);
    window.receive(100);
    assert.throws(() => window.receive(1), /1 bytes more than its window allows/);
  });
});
