import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { DbusMessageReader, encodeMessage } from './message.ts';
import { type DbusValue, splitSignature, ValueReader, ValueWriter } from './values.ts';

/** A D-Bus type with some of its values. */
const typed: fc.Arbitrary<readonly [string, DbusValue]> = fc.letrec<{ any: readonly [string, DbusValue] }>(
  (tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.nat(255).map((value) => ['y', value] as const),
      fc.boolean().map((value) => ['b', value] as const),
      fc.integer({ min: -32768, max: 32767 }).map((value) => ['n', value] as const),
      fc.integer().map((value) => ['i', value] as const),
      fc.nat(2 ** 32 - 1).map((value) => ['u', value] as const),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => ['x', value] as const),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ['t', value] as const),
      fc.double({ noNaN: true }).map((value) => ['d', value] as const),
      fc.string({ unit: 'grapheme' }).map((value) => ['s', value.replaceAll('\0', '')] as const),
      tie('any').map(([signature, value]) => ['v', { signature, value }] as const),
      tie('any').map(([signature, value]) => [`a${signature}`, [value, value, value]] as const),
      tie('any').map(([signature]) => [`a${signature}`, []] as const),
      fc
        .array(tie('any'), { minLength: 1, maxLength: 4 })
        .map((all) => [`(${all.map(([type]) => type).join('')})`, all.map(([, value]) => value)] as const),
    ),
  }),
).any as fc.Arbitrary<readonly [string, DbusValue]>;

describe('D-Bus values', () => {
  it('decodes D-Bus values as they were encoded', () => {
    fc.assert(
      fc.property(fc.array(typed, { maxLength: 5 }), (all) => {
        const signature = all.map(([type]) => type).join('');
        const values = all.map(([, value]) => value);
        const bytes = new ValueWriter().write(signature, values).bytes();
        assert.deepEqual(new ValueReader(bytes, 'little').read(signature), values);
        assert.deepEqual(
          splitSignature(signature),
          all.map(([type]) => type),
        );
      }),
    );
  });

  it('encodes D-Bus values with the layout of the specification', () => {
    const bytes = new ValueWriter().write('yus', [1, 2, 'ab']).bytes();
    assert.equal(bytes.toString('hex'), '01000000020000000200000061620000'.slice(0, 30));
    assert.deepEqual(new ValueReader(Buffer.from('0000000200', 'hex'), 'big').read('u'), [2]);
  });

  it('rejects malformed D-Bus values', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 64 }),
        fc.stringMatching(/^[ybnqiuxtdsogvah(){}]{1,8}$/),
        (bytes, signature) => {
          try {
            new ValueReader(Buffer.from(bytes), 'little').read(signature);
          } catch (error) {
            assert.match((error as Error).message, /^Cannot read a message of D-Bus/);
          }
        },
      ),
    );
  });
});

describe('D-Bus messages', () => {
  const call = {
    type: 'call' as const,
    serial: 7,
    path: '/org/x',
    interface: 'org.x.Y',
    member: 'Do',
    destination: 'org.x',
    signature: 'sb',
    body: ['text', true],
  };

  it('decodes messages as they were encoded, however the bytes are divided into chunks', () => {
    const bytes = Buffer.concat([
      encodeMessage(call),
      encodeMessage({ type: 'return', serial: 8, replySerial: 7 }),
    ]);
    fc.assert(
      fc.property(fc.nat(bytes.length), (cut) => {
        const reader = new DbusMessageReader();
        const messages = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut))];
        assert.deepEqual(messages, [call, { type: 'return', serial: 8, replySerial: 7, body: [] }]);
      }),
    );
  });

  it('skips a message of more than 1 MiB without buffering it, and decodes the next', () => {
    const huge = encodeMessage({ ...call, signature: 'ay', body: [new Array<number>(2_000_000).fill(1)] });
    const reader = new DbusMessageReader();
    for (let at = 0; at < huge.length; at += 60_000)
      assert.deepEqual(reader.push(huge.subarray(at, at + 60_000)), []);
    assert.deepEqual(reader.push(encodeMessage(call)), [call]);
  });

  it('does not decode the body of a message whose header is not accepted', () => {
    const broken = encodeMessage({ ...call, member: 'Other', signature: 'as', body: [['one', 'two']] });
    broken.writeUInt32LE(0xffffff, broken.length - 12);
    const reader = new DbusMessageReader(({ member }) => member === 'Do');
    assert.deepEqual(reader.push(Buffer.concat([broken, encodeMessage(call)])), [call]);
  });

  it('rejects bytes that are not a D-Bus message', () => {
    assert.throws(
      () => new DbusMessageReader().push(Buffer.from('GET / HTTP/1.1\r\nHost: x')),
      /first byte is no endianness mark/,
    );
  });
});
