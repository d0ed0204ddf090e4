import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from '../../lib/errors.ts';
import { WireReader, WireWriter, wireType } from './wire.ts';

function written(write: (writer: WireWriter) => void, size?: number): Buffer {
  const writer = new WireWriter(size);
  write(writer);
  return writer.finish();
}

const malformed = (error: unknown) => error instanceof KubelingError && error.code === 'PROTOBUF_MALFORMED';

const numbers: readonly (readonly [bigint, string])[] = [
  [0n, '00'],
  [1n, '01'],
  [127n, '7f'],
  [128n, '8001'],
  [16_383n, 'ff7f'],
  [16_384n, '808001'],
  [2n ** 28n - 1n, 'ffffff7f'],
  [2n ** 28n, '8080808001'],
  [2n ** 32n - 1n, 'ffffffff0f'],
  [2n ** 32n, '8080808010'],
  [2n ** 35n, '808080808001'],
  [2n ** 53n, '8080808080808010'],
  [2n ** 63n - 1n, 'ffffffffffffffff7f'],
  [2n ** 63n, '80808080808080808001'],
  [2n ** 64n - 1n, 'ffffffffffffffffff01'],
];

for (const [value, hex] of numbers) {
  test(`encodes ${value} as ${hex} and decodes it`, () => {
    const bytes = Buffer.from(hex, 'hex');
    assert.deepEqual(
      written((writer) => writer.uint64(value)),
      bytes,
    );
    assert.equal(new WireReader(bytes).uint64(), value);
    if (value < 2n ** 32n) {
      assert.deepEqual(
        written((writer) => writer.uint32(Number(value))),
        bytes,
      );
      assert.equal(new WireReader(bytes).uint32(), Number(value));
    }
  });
}

test('encodes negative numbers with ten bytes and decodes them', () => {
  for (const value of [-1, -2, -128, -(2 ** 31)]) {
    const bytes = written((writer) => writer.int32(value));
    assert.equal(bytes.length, 10);
    assert.equal(new WireReader(bytes).int32(), value);
    assert.equal(new WireReader(bytes).int64(), BigInt(value));
  }
  const least = written((writer) => writer.uint64(-(2n ** 63n)));
  assert.equal(new WireReader(least).int64(), -(2n ** 63n));
});

test('decodes a 64-bit number that is read as 32 bits to its low half, and continues with the next value', () => {
  const bytes = written((writer) => {
    writer.uint64(2n ** 40n + 7n);
    writer.uint32(5);
  });
  const reader = new WireReader(bytes);
  assert.equal(reader.uint32(), 7);
  assert.equal(reader.uint32(), 5);
  assert.ok(reader.done);
});

test('decodes any number but zero as true', () => {
  for (const [hex, value] of [
    ['00', false],
    ['01', true],
    ['02', true],
    ['8000', false],
    ['8001', true],
    ['80808080808080808001', true],
  ] as const) {
    const reader = new WireReader(Buffer.from(hex, 'hex'));
    assert.equal(reader.bool(), value);
    assert.ok(reader.done);
  }
});

test('decodes every 64-bit number as it was encoded', () => {
  fc.assert(
    fc.property(fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n), (value) => {
      const bytes = written((writer) => writer.uint64(value));
      assert.equal(new WireReader(bytes).uint64(), BigInt.asUintN(64, value));
      assert.equal(new WireReader(bytes).int64(), BigInt.asIntN(64, value));
    }),
  );
});

test('decodes strings of every length and writing system as they were encoded, whatever the initial buffer size', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.integer({ min: 0, max: 64 }),
      (text, size) => {
        const bytes = written((writer) => writer.string(text), size);
        assert.equal(new WireReader(bytes).string(), text);
      },
    ),
  );
});

test('encodes half of a surrogate pair as the replacement character', () => {
  for (const text of ['\ud800', `${'a'.repeat(200)}\udc00`]) {
    const bytes = written((writer) => writer.string(text));
    assert.equal(new WireReader(bytes).string(), text.toWellFormed());
  }
});

test('copies decoded bytes out of the input', () => {
  const input = written((writer) => writer.bytes(Buffer.from([1, 2, 3])));
  const out = new WireReader(input).bytes();
  input.fill(0);
  assert.deepEqual(out, Buffer.from([1, 2, 3]));
});

for (const length of [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]) {
  test(`encodes the length of a nested part of ${length} bytes and leaves the surrounding bytes unchanged`, () => {
    const content = Buffer.alloc(length, 0xab);
    const bytes = written((writer) => {
      writer.uint32(7);
      const start = writer.begin();
      for (const byte of content) writer.uint32(byte & 0x7f);
      writer.end(start);
      writer.uint32(9);
    }, 16);
    const reader = new WireReader(bytes);
    assert.equal(reader.uint32(), 7);
    const outer = reader.enter();
    for (let index = 0; index < length; index++) assert.equal(reader.uint32(), 0x2b);
    assert.ok(reader.done);
    reader.leave(outer);
    assert.equal(reader.uint32(), 9);
    assert.ok(reader.done);
  });
}

test('decodes nested parts whose length takes several bytes', () => {
  const bytes = written((writer) => {
    const starts = Array.from({ length: 50 }, () => writer.begin());
    writer.string('x'.repeat(20_000));
    for (const start of starts.reverse()) writer.end(start);
  });
  const reader = new WireReader(bytes);
  for (let depth = 0; depth < 50; depth++) reader.enter();
  assert.equal(reader.string().length, 20_000);
  assert.ok(reader.done);
});

test('continues after the end of a nested part that was not read completely', () => {
  const reader = new WireReader(Buffer.from('030102037f', 'hex'));
  const outer = reader.enter();
  assert.equal(reader.uint32(), 1);
  reader.leave(outer);
  assert.equal(reader.uint32(), 0x7f);
});

const broken: readonly (readonly [string, string, (reader: WireReader) => unknown])[] = [
  ['a number that stops', '80', (reader) => reader.uint32()],
  ['a long number that stops', '808080808080', (reader) => reader.uint64()],
  ['a number of eleven bytes', '8080808080808080808080', (reader) => reader.uint64()],
  ['a 32-bit number of eleven bytes', 'ffffffffffffffffffffff01', (reader) => reader.uint32()],
  ['a truth of eleven bytes', 'ffffffffffffffffffffff01', (reader) => reader.bool()],
  ['nothing', '', (reader) => reader.uint32()],
  ['a string past the end', '0561', (reader) => reader.string()],
  ['a string of four gigabytes', 'ffffffff0f61', (reader) => reader.string()],
  ['bytes past the end', '0561', (reader) => reader.bytes()],
  ['a part past the end', '0561', (reader) => reader.enter()],
  ['half a double', '00000000', (reader) => reader.double()],
  ['half a float', '0000', (reader) => reader.float()],
  ['field number 0', '00', (reader) => reader.tag()],
  ['field number 0 as bytes', '02', (reader) => reader.tag()],
  ['a skipped string past the end', '05', (reader) => reader.skip(wireType.bytes)],
  ['a skipped double past the end', '05', (reader) => reader.skip(wireType.fixed64)],
  ['a skipped float past the end', '05', (reader) => reader.skip(wireType.fixed32)],
  ['a group', '', (reader) => reader.skip(3)],
  ['wire type 7', '', (reader) => reader.skip(7)],
];

for (const [what, hex, read] of broken) {
  test(`rejects malformed protobuf input: ${what}`, () => {
    assert.throws(() => read(new WireReader(Buffer.from(hex, 'hex'))), malformed);
  });
}

test('reads nothing past the end of a nested part', () => {
  for (const read of [
    (reader: WireReader) => reader.string(),
    (reader: WireReader) => reader.uint64(),
    (reader: WireReader) => reader.double(),
    (reader: WireReader) => reader.enter(),
  ]) {
    const reader = new WireReader(Buffer.from('0185aaaaaaaaaaaaaaaaaaaa', 'hex'));
    reader.enter();
    assert.throws(() => read(reader), malformed);
  }
});

test('reads nothing outside a view into a larger buffer', () => {
  const large = Buffer.from('ffff05616263ffff', 'hex');
  assert.throws(() => new WireReader(large.subarray(2, 6)).string(), malformed);
  assert.equal(new WireReader(new Uint8Array(Buffer.from('03616263', 'hex'))).string(), 'abc');
});

test('rejects a message with more values or nested messages than any response has, before memory is allocated for them', () => {
  const values = new WireReader(Buffer.alloc(2_100_000, Buffer.from('0800', 'hex')));
  assert.throws(() => {
    while (!values.done) {
      values.tag();
      values.uint32();
    }
  }, /more than 1000000 values/);
  const parts = new WireReader(Buffer.alloc(600_000, Buffer.from('0a00', 'hex')));
  assert.throws(() => {
    while (!parts.done) {
      parts.tag();
      parts.leave(parts.enter());
    }
  }, /more than 250000 messages/);
});
