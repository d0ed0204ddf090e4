import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from '../../lib/errors.ts';
import { type MessageType, Schema } from './index.ts';
import { WireWriter } from './wire.ts';

type Anything = Record<string, unknown>;

const schema = new Schema(`
enum Color|RED 0|GREEN 1|ALSO_GREEN 1|BLUE 5|COLD -3
message Empty
message Inner|1 id string|2 count int32
message All|1 text string|2 raw bytes|3 flag bool|4 i32 int32|5 u32 uint32|6 i64 int64|7 u64 uint64|8 dbl double|9 flt float|10 color Color|11 inner Inner
message Optional|1 text optional string|2 flag optional bool|3 color optional Color|4 inner optional Inner|5 i64 optional int64
message Lists|1 texts repeated string|2 numbers repeated int32|3 longs repeated uint64|4 flags repeated bool|5 colors repeated Color|6 inners repeated Inner|7 doubles repeated double|8 raws repeated bytes
message Maps|1 texts map string string|2 numbers map int32 string|3 longs map uint64 int64|4 flags map bool string|5 inners map string Inner|6 colors map string Color
message Tree|1 name string|2 children repeated Tree|3 only Tree
message Choice|1 a optional string|2 b optional int32
message Sparse|1 low string|536870911 high string
message Next|1 text string|99 more string|100 number int64|101 doubles repeated double|102 inner Inner|103 flt float|104 raw bytes
`);

function type(name: string): MessageType<Anything> {
  return schema.message(name);
}

/** Encodes fields by hand, as another protobuf implementation might. */
function wire(...fields: readonly (readonly [number, number, (writer: WireWriter) => void])[]): Buffer {
  const writer = new WireWriter();
  for (const [number, wireType, write] of fields) {
    writer.uint32((number << 3) | wireType);
    write(writer);
  }
  return writer.finish();
}

function roundTrip(name: string, init: Anything): Anything {
  return type(name).decode(type(name).encode(init));
}

const malformed = (error: unknown) => error instanceof KubelingError && error.code === 'PROTOBUF_MALFORMED';

const allDefaults = {
  text: '',
  raw: Buffer.alloc(0),
  flag: false,
  i32: 0,
  u32: 0,
  i64: 0n,
  u64: 0n,
  dbl: 0,
  flt: 0,
  color: 'RED',
  inner: undefined,
};

describe('protobuf defaults', () => {
  test('created and decoded empty messages have the default of every field', () => {
    assert.deepEqual(type('All').decode(Buffer.alloc(0)), allDefaults);
    assert.deepEqual(type('All').create({}), allDefaults);
    assert.deepEqual(type('Empty').create({}), {});
    assert.deepEqual(type('Maps').create({}), {
      texts: {},
      numbers: {},
      longs: {},
      flags: {},
      inners: {},
      colors: {},
    });
  });

  test('does not encode fields with the default value', () => {
    assert.equal(type('All').encode(allDefaults).length, 0);
    assert.equal(type('All').encode({}).length, 0);
    assert.equal(type('Lists').encode(type('Lists').create({})).length, 0);
    assert.equal(type('Maps').encode(type('Maps').create({})).length, 0);
  });

  test('encodes an empty nested message, because its presence has a meaning', () => {
    assert.deepEqual(type('All').encode({ inner: {} }), Buffer.from('5a00', 'hex'));
    assert.deepEqual(roundTrip('All', { inner: {} })['inner'], { id: '', count: 0 });
  });

  test('gives each message its own lists and maps, also when they are empty by default', () => {
    for (const name of ['Lists', 'Maps']) {
      const [first, second] = [type(name).create({}), type(name).decode(Buffer.alloc(0))];
      for (const field of Object.keys(first)) assert.notEqual(first[field], second[field], field);
    }
  });
});

describe('creation of protobuf messages', () => {
  test('sets missing fields to their defaults at every depth', () => {
    assert.deepEqual(type('All').create({ inner: { id: 'x' } })['inner'], { id: 'x', count: 0 });
    assert.deepEqual(type('Lists').create({ inners: [{ count: 1 }] })['inners'], [{ id: '', count: 1 }]);
    assert.deepEqual(type('Maps').create({ inners: { a: {} } })['inners'], { a: { id: '', count: 0 } });
  });

  test('treats undefined fields as missing, and omits unknown fields', () => {
    assert.deepEqual(type('Inner').create({ id: undefined, other: 1 }), { id: '', count: 0 });
    assert.deepEqual(type('Maps').create({ texts: { a: undefined, b: 'c' } })['texts'], { b: 'c' });
  });

  test('copies lists and maps of the input, so that later changes have no effect', () => {
    const texts = ['a'];
    const created = type('Lists').create({ texts });
    texts.push('b');
    assert.deepEqual(created['texts'], ['a']);
  });

  test('keeps a map key called __proto__ as data', () => {
    const texts = JSON.parse('{"__proto__":"x"}');
    const created = type('Maps').create({ texts })['texts'] as object;
    assert.deepEqual(Object.entries(created), [['__proto__', 'x']]);
    assert.equal(Object.getPrototypeOf(created), Object.prototype);
  });
});

describe('protobuf scalars', () => {
  test('decodes the minimum and the maximum of each type as they were encoded', () => {
    for (const init of [
      { i32: 2 ** 31 - 1, u32: 2 ** 32 - 1, i64: 2n ** 63n - 1n, u64: 2n ** 64n - 1n },
      { i32: -(2 ** 31), u32: 1, i64: -(2n ** 63n), u64: 1n },
      { dbl: Number.MAX_VALUE, flt: 1.5, flag: true, color: 'COLD' },
      { dbl: Number.NaN, flt: Number.POSITIVE_INFINITY },
      { dbl: Number.MIN_VALUE, flt: -0.25 },
      { text: 'ünïcode \u{1f600} \0', raw: Buffer.from([0, 255]) },
    ]) {
      assert.deepEqual(roundTrip('All', init), { ...allDefaults, ...init });
    }
  });

  test('rejects a value that its field type cannot contain, and names the field', () => {
    for (const [field, value] of [
      ['i32', 2 ** 31],
      ['i32', 1.5],
      ['i32', Number.NaN],
      ['u32', -1],
      ['u32', 2 ** 32],
      ['i64', 2n ** 63n],
      ['u64', -1n],
      ['i64', 5],
      ['text', 5],
      ['raw', 5],
      ['color', 'PINK'],
      ['color', 'UNRECOGNIZED'],
      ['inner', { count: 1.5 }],
    ] as const) {
      const where = field === 'inner' ? 'Inner.count' : `All.${field}`;
      assert.throws(
        () => type('All').encode({ [field]: value }),
        (error) =>
          error instanceof KubelingError &&
          error.code === 'BUG' &&
          error.message.startsWith(`Cannot encode ${where}: `),
        `${field} ${value}`,
      );
    }
  });

  test('uses the last value of a repeated singular field', () => {
    const bytes = wire(
      [1, 2, (writer) => writer.string('first')],
      [1, 2, (writer) => writer.string('second')],
    );
    assert.equal(type('Inner').decode(bytes)['id'], 'second');
  });

  test('merges the occurrences of one singular message field', () => {
    const bytes = Buffer.concat([
      type('All').encode({ inner: { id: 'a', count: 1 } }),
      type('All').encode({ inner: { id: 'b' } }),
    ]);
    assert.deepEqual(type('All').decode(bytes)['inner'], { id: 'b', count: 1 });
  });

  test('copies decoded bytes, so that the input buffer may be reused', () => {
    const input = type('All').encode({ raw: Buffer.from('abc') });
    const { raw } = type('All').decode(input);
    input.fill(0);
    assert.deepEqual(raw, Buffer.from('abc'));
  });

  test('supports field numbers up to the maximum', () => {
    const init = { low: 'a', high: 'b' };
    assert.deepEqual(roundTrip('Sparse', init), init);
    assert.equal(type('Sparse').encode({ high: 'b' }).toString('hex'), 'faffffff0f0162');
  });
});

describe('protobuf enums', () => {
  test('decodes an unknown enum value as UNRECOGNIZED, alone and in lists', () => {
    assert.equal(type('All').decode(wire([10, 0, (writer) => writer.int32(77)]))['color'], 'UNRECOGNIZED');
    assert.deepEqual(type('Lists').decode(wire([5, 0, (writer) => writer.int32(-9)]))['colors'], [
      'UNRECOGNIZED',
    ]);
  });

  test('encodes an enum value that has two names by either name, and decodes it as the first name', () => {
    assert.equal(roundTrip('All', { color: 'ALSO_GREEN' })['color'], 'GREEN');
  });
});

describe('protobuf optional fields', () => {
  test('distinguishes an absent optional field from its default', () => {
    const nothing = { text: undefined, flag: undefined, color: undefined, inner: undefined, i64: undefined };
    assert.deepEqual(type('Optional').decode(Buffer.alloc(0)), nothing);
    assert.deepEqual(type('Optional').create({}), nothing);
  });

  test('encodes and decodes an optional field that is set to its default', () => {
    const init = { text: '', flag: false, color: 'RED', inner: { id: '', count: 0 }, i64: 0n };
    assert.deepEqual(roundTrip('Optional', init), init);
  });

  test('distinguishes which member of a oneof is set', () => {
    assert.deepEqual(roundTrip('Choice', { b: 0 }), { a: undefined, b: 0 });
    assert.deepEqual(roundTrip('Choice', { a: '' }), { a: '', b: undefined });
  });
});

describe('protobuf lists', () => {
  const init = {
    texts: ['', 'a', ''],
    numbers: [0, -1, 2 ** 31 - 1],
    longs: [0n, 2n ** 64n - 1n],
    flags: [true, false],
    colors: ['RED', 'BLUE'],
    inners: [
      { id: '', count: 0 },
      { id: 'x', count: 2 },
    ],
    doubles: [0, 1.5],
    raws: [Buffer.alloc(0), Buffer.from('x')],
  };

  test('a decoded list has the same items in the same order, including items with the default value', () => {
    assert.deepEqual(roundTrip('Lists', init), init);
  });

  test('encodes lists of numbers packed', () => {
    assert.equal(
      type('Lists')
        .encode({ numbers: [1, 2, 3] })
        .toString('hex'),
      '1203010203',
    );
  });

  test('decodes lists of numbers that are packed, separate or mixed', () => {
    const packed = type('Lists').encode({ numbers: [1, 2], doubles: [0.5] });
    const single = wire([2, 0, (writer) => writer.int32(3)], [7, 1, (writer) => writer.double(2)]);
    const message = type('Lists').decode(Buffer.concat([packed, single, packed]));
    assert.deepEqual(message['numbers'], [1, 2, 3, 1, 2]);
    assert.deepEqual(message['doubles'], [0.5, 2, 0.5]);
  });

  test('rejects a packed list that ends inside a number', () => {
    assert.throws(() => type('Lists').decode(Buffer.from('120180', 'hex')), malformed);
    assert.throws(() => type('Lists').decode(Buffer.from('3a0400000000', 'hex')), malformed);
  });

  test('rejects an undefined list item', () => {
    assert.throws(() => type('Lists').encode({ texts: ['a', undefined] }), /Cannot encode Lists\.texts/);
  });
});

describe('protobuf maps', () => {
  const init = {
    texts: { '': 'empty key', a: '' },
    numbers: { '-5': 'minus', '2147483647': 'most' },
    longs: { '18446744073709551615': -1n, '0': 0n },
    flags: { true: 'yes', false: 'no' },
    inners: { a: { id: 'x', count: 1 }, b: { id: '', count: 0 } },
    colors: { sky: 'BLUE', fire: 'RED' },
  };

  test('maps with keys of every type are decoded as they were encoded', () => {
    assert.deepEqual(roundTrip('Maps', init), init);
  });

  test('sets the missing key or value of a map entry to its default', () => {
    assert.deepEqual(type('Maps').decode(Buffer.from('0a00', 'hex'))['texts'], { '': '' });
    assert.deepEqual(type('Maps').decode(Buffer.from('2a00', 'hex'))['inners'], { '': { id: '', count: 0 } });
  });

  test('uses the last of two map entries with equal keys, and skips unknown fields of an entry', () => {
    const bytes = Buffer.concat([
      type('Maps').encode({ texts: { a: '1', b: '2' } }),
      type('Maps').encode({ texts: { a: '3' } }),
      Buffer.from('0a0818010a0162120134', 'hex'),
    ]);
    assert.deepEqual(type('Maps').decode(bytes)['texts'], { a: '3', b: '4' });
  });

  test('decodes a map key called __proto__ as data and changes no prototype', () => {
    const texts = JSON.parse('{"__proto__":"x","constructor":"y"}');
    const inners = JSON.parse('{"__proto__":{"id":"evil"}}');
    const message = roundTrip('Maps', { texts, inners });
    assert.deepEqual(Object.entries(message['texts'] as object), [
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
    assert.equal(Object.getPrototypeOf(message['inners']), Object.prototype);
    assert.equal((message['inners'] as Anything)['id'], undefined);
    assert.equal(({} as Anything)['id'], undefined);
  });

  test('rejects a text as map key where a number is required', () => {
    assert.throws(() => type('Maps').encode({ numbers: { x: 'y' } }), /Cannot encode Maps\.numbers/);
    assert.throws(() => type('Maps').encode({ longs: { x: 1n } }), /Cannot encode Maps\.longs/);
  });

  test('skips a map field with another wire type', () => {
    const bytes = wire([1, 0, (writer) => writer.uint32(5)], [2, 1, (writer) => writer.double(1)]);
    assert.deepEqual(type('Maps').decode(bytes), type('Maps').create({}));
  });
});

describe('unknown protobuf input', () => {
  test('skips fields of a newer definition, whatever their type', () => {
    const bytes = type('Next').encode({
      text: 'known',
      more: 'x',
      number: -1n,
      doubles: [1, 2],
      inner: { id: 'y' },
      flt: 1.5,
      raw: Buffer.alloc(300),
    });
    assert.deepEqual(type('Inner').decode(bytes), { id: 'known', count: 0 });
  });

  test('skips a known field with another wire type', () => {
    const bytes = wire(
      [1, 0, (writer) => writer.uint32(5)],
      [4, 2, (writer) => writer.string('x')],
      [8, 5, (writer) => writer.float(1)],
      [9, 1, (writer) => writer.double(1)],
      [11, 0, (writer) => writer.uint32(1)],
      [3, 0, (writer) => writer.uint32(1)],
    );
    assert.deepEqual(type('All').decode(bytes), { ...allDefaults, flag: true });
    const lists = wire([1, 0, (writer) => writer.uint32(1)], [6, 5, (writer) => writer.float(1)]);
    assert.deepEqual(type('Lists').decode(lists), type('Lists').create({}));
  });
});

describe('hostile protobuf input', () => {
  test('rejects messages that are nested too deeply', () => {
    const nested = (depth: number) => {
      let tree: Anything = { name: 'leaf' };
      for (let level = 0; level < depth; level++) tree = { only: tree };
      return type('Tree').encode(tree);
    };
    assert.doesNotThrow(() => type('Tree').decode(nested(100)));
    assert.throws(() => type('Tree').decode(nested(101)), malformed);
  });

  test('rejects a message that contains itself when encoding', () => {
    const tree: Anything = { name: 'me' };
    tree['only'] = tree;
    assert.throws(() => type('Tree').encode(tree), KubelingError);
  });

  test('decodes any bytes or rejects them as malformed, for every kind of field', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('All', 'Optional', 'Lists', 'Maps', 'Tree', 'Sparse', 'Empty'),
        fc.uint8Array({ maxLength: 200 }),
        (name, bytes) => {
          try {
            type(name).decode(bytes);
          } catch (error) {
            assert.ok(malformed(error), String(error));
          }
        },
      ),
      { numRuns: 3_000 },
    );
  });

  test('decodes only a part of a truncated message, or rejects it', () => {
    const whole = type('Lists').encode({ texts: ['abc', 'def'], numbers: [1, 300], inners: [{ id: 'x' }] });
    for (let length = 0; length < whole.length; length++) {
      try {
        const texts = type('Lists').decode(whole.subarray(0, length))['texts'] as string[];
        assert.ok(['abc', 'def'].join().startsWith(texts.join()));
      } catch (error) {
        assert.ok(malformed(error), String(error));
      }
    }
  });

  test('decodes or rejects a message with a changed byte', () => {
    const whole = type('Maps').encode({ texts: { a: 'b' }, inners: { c: { id: 'd', count: -1 } } });
    for (let index = 0; index < whole.length; index++) {
      for (let bit = 0; bit < 8; bit++) {
        const changed = Buffer.from(whole);
        changed[index] = (changed[index] ?? 0) ^ (1 << bit);
        try {
          type('Maps').decode(changed);
        } catch (error) {
          assert.ok(malformed(error), String(error));
        }
      }
    }
  });
});
