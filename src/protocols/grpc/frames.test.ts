import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GrpcMessageReader, grpcFrame } from './frames.ts';
import { GrpcError } from './status.ts';

test('a gRPC frame is a zero byte, the length and the message', () => {
  assert.equal(grpcFrame(Buffer.from('abc')).toString('hex'), '0000000003616263');
  assert.equal(grpcFrame(Buffer.alloc(0)).toString('hex'), '0000000000');
});

test('decodes messages however the bytes are divided into chunks', () => {
  const content = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 });
  const sizes = fc.infiniteStream(fc.integer({ min: 1, max: 12 }));
  fc.assert(
    fc.property(content, sizes, (messages, cuts) => {
      const wire = Buffer.concat(messages.map(grpcFrame));
      const reader = new GrpcMessageReader(100);
      const read: Buffer[] = [];
      let at = 0;
      for (const size of cuts) {
        if (at >= wire.length) break;
        read.push(...reader.push(wire.subarray(at, at + size)));
        at += size;
      }
      assert.deepEqual(
        read.map((message) => message.toString('hex')),
        messages.map((message) => Buffer.from(message).toString('hex')),
      );
      assert.equal(reader.hasPartialMessage, false);
    }),
  );
});

test('reports whether a message is incomplete', () => {
  const reader = new GrpcMessageReader(100);
  assert.equal(reader.hasPartialMessage, false);
  reader.push(Buffer.from([0, 0]));
  assert.equal(reader.hasPartialMessage, true);
  reader.push(Buffer.from([0, 0, 1]));
  assert.equal(reader.hasPartialMessage, true);
  assert.equal(reader.push(Buffer.from([7])).length, 1);
  assert.equal(reader.hasPartialMessage, false);
});

test('accepts a message at the size limit, and rejects a larger one by its length alone', () => {
  assert.equal(new GrpcMessageReader(3).push(grpcFrame(Buffer.alloc(3))).length, 1);
  const announced = grpcFrame(Buffer.alloc(4)).subarray(0, 5);
  assert.throws(
    () => new GrpcMessageReader(3).push(announced),
    (error) =>
      error instanceof GrpcError &&
      error.grpcCode === 'RESOURCE_EXHAUSTED' &&
      /4 bytes, limit 3/.test(error.message),
  );
});

test('rejects a compressed message, because the client offers no encoding', () => {
  assert.throws(
    () => new GrpcMessageReader(10).push(Buffer.from([1, 0, 0, 0, 0])),
    (error) => error instanceof GrpcError && error.grpcCode === 'INTERNAL',
  );
});

test('joins the pieces of a large message once, when it is complete', () => {
  const size = 16 << 20;
  const wire = grpcFrame(Buffer.alloc(size, 1));
  const reader = new GrpcMessageReader(size);
  let messages: readonly Buffer[] = [];
  const start = process.threadCpuUsage();
  for (let at = 0; at < wire.length; at += 1_024) messages = reader.push(wire.subarray(at, at + 1_024));
  assert.equal(messages[0]?.length, size);
  assert.ok(process.threadCpuUsage(start).user < 10e6);
});
