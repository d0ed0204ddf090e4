import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Http2Error } from './frames.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { encodeHeaders, joinBlocks, zeroTableSizeUpdate } from './hpack-encoder.ts';
import type { HeaderField } from './hpack-tables.ts';

const bytesOf = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const decoder = () => new HpackDecoder(1 << 20);
const isMalformed = (error: unknown) => error instanceof Http2Error && error.reason === 'COMPRESSION_ERROR';

function fields(decoded: ReturnType<HpackDecoder['decode']>): readonly HeaderField[] {
  assert.notEqual(decoded, 'too-large');
  return decoded === 'too-large' ? [] : [...decoded];
}

const first: readonly HeaderField[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
];
const requests: readonly (readonly HeaderField[])[] = [
  first,
  [...first, ['cache-control', 'no-cache']],
  [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ],
];
const answer = (status: string, date: string): readonly HeaderField[] => [
  [':status', status],
  ['cache-control', 'private'],
  ['date', date],
  ['location', 'https://www.example.com'],
];
const responses: readonly (readonly HeaderField[])[] = [
  answer('302', 'Mon, 21 Oct 2013 20:13:21 GMT'),
  answer('307', 'Mon, 21 Oct 2013 20:13:21 GMT'),
  [
    ...answer('200', 'Mon, 21 Oct 2013 20:13:22 GMT'),
    ['content-encoding', 'gzip'],
    ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
  ],
];
/** A dynamic table size update to 256 bytes, the table size in some examples of RFC 7541. */
const resized = '3fe101';

/**
 * The examples in Appendix C of RFC 7541: for each connection its header blocks and the headers to
 * which they decode.
 */
const examples: Readonly<Record<string, readonly [readonly string[], readonly (readonly HeaderField[])[]]>> =
  {
    'C.2.1': [
      ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572'],
      [[['custom-key', 'custom-header']]],
    ],
    'C.2.2': [['040c 2f73 616d 706c 652f 7061 7468'], [[[':path', '/sample/path']]]],
    'C.2.3': [['1008 7061 7373 776f 7264 0673 6563 7265 74'], [[['password', 'secret']]]],
    'C.2.4': [['82'], [[[':method', 'GET']]]],
    'C.3': [
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
      requests,
    ],
    'C.4': [
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
      requests,
    ],
    'C.5': [
      [
        `${resized}4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
       3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
        '4803 3330 37c1 c0bf',
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f
       6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b
       2076 6572 7369 6f6e 3d31`,
      ],
      responses,
    ],
    'C.6': [
      [
        `${resized}4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
       1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
        '4883 640e ffc1 c0bf',
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335
       dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
      ],
      responses,
    ],
  };

describe('decodes the examples of RFC 7541', () => {
  for (const [name, [blocks, expected]] of Object.entries(examples)) {
    test(name, () => {
      const one = decoder();
      const read = blocks.map((block) => fields(one.decode(bytesOf(block.replace(/\s/g, '')))));
      assert.deepEqual(read, expected);
    });
  }
});

describe('HPACK decoding', () => {
  test('decodes equal bytes to different headers when they refer to the dynamic table and the table has changed', () => {
    const one = decoder();
    const add = (value: string) => one.decode(Buffer.concat([bytesOf('4001 61 01'), Buffer.from(value)]));
    add('1');
    assert.deepEqual(fields(one.decode(bytesOf('be'))), [['a', '1']]);
    add('2');
    assert.deepEqual(fields(one.decode(bytesOf('be'))), [['a', '2']]);
    assert.deepEqual(fields(one.decode(bytesOf('bf'))), [['a', '1']]);
    // This block has the same bytes as the first one and adds another entry to the table.
    add('1');
    assert.deepEqual(fields(one.decode(bytesOf('bebf'))), [['a', '1, 2']]);
  });

  test('stores no entry in a dynamic table of zero bytes', () => {
    const one = decoder();
    assert.deepEqual(fields(one.decode(bytesOf('20 4001 61 0131'))), [['a', '1']]);
    assert.throws(() => one.decode(bytesOf('be')), isMalformed);
  });

  test('joins the values of a repeated header', () => {
    assert.deepEqual(fields(decoder().decode(bytesOf('0001 61 0131 0001 61 0132'))), [['a', '1, 2']]);
  });

  test('reports too many headers, and keeps the dynamic table correct', () => {
    const one = new HpackDecoder(100);
    assert.equal(
      one.decode(Buffer.concat([bytesOf('0001 61 7f01'), Buffer.alloc(128, 'x'), bytesOf('4001 62 0133')])),
      'too-large',
    );
    assert.deepEqual(fields(one.decode(bytesOf('be'))), [['b', '3']]);
    // Each byte refers to a large entry: the size of the decoded headers counts.
    assert.equal(one.decode(Buffer.alloc(4, 0xbe)), 'too-large');
  });

  for (const [what, hex] of [
    ['a header numbered 0', '80'],
    ['a header that is not in the table', 'be'],
    ['a name that is not in the table', '7f 00 0131'],
    ['a table larger than allowed', '3fe2 1f'],
    ['a table resized in the middle', '82 20'],
    ['a number without end', 'ffff ffff ffff ffff 7f'],
    ['a number cut short', 'ff'],
    ['a string cut short', '0005 61'],
    ['a string without a length', '00'],
    ['a Huffman code with a wrong end', '0001 61 8100'],
  ] as const) {
    test(`rejects ${what} as a compression error`, () => {
      assert.throws(() => decoder().decode(bytesOf(hex)), isMalformed);
    });
  }

  test('decodes or rejects random and mutated header blocks', () => {
    const real = Object.values(examples).flatMap(([blocks]) =>
      blocks.map((block) => bytesOf(block.replace(/\s/g, ''))),
    );
    const mutated = fc
      .tuple(fc.constantFrom(...real), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }))
      .map(([block, changes]) => {
        const copy = Buffer.from(block);
        for (const [at, byte] of changes) copy[at % copy.length] = byte;
        return copy;
      });
    const any = fc.oneof(
      mutated,
      fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(fc.array(any, { maxLength: 6 }), (blocks) => {
        const one = decoder();
        try {
          for (const block of blocks) one.decode(block);
        } catch (error) {
          assert.ok(isMalformed(error), String(error));
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('HPACK encoding', () => {
  test('encodes headers of the static table by index, and others as text', () => {
    const { bytes, listBytes } = encodeHeaders([
      [':method', 'POST'],
      [':path', '/a'],
      ['te', 'trailers'],
    ]);
    assert.equal(bytes.toString('hex'), '8304022f610002746508747261696c657273');
    assert.equal(listBytes, 11 + 32 + 7 + 32 + 10 + 32);
  });

  test('encoded headers decode to the same headers, whatever was decoded before', () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/);
    const value = fc.oneof(fc.stringMatching(/^[ -~]{0,40}$/), fc.constant('x'.repeat(5_000)));
    const list = fc.uniqueArray(fc.tuple(name, value), { selector: ([one]) => one, maxLength: 8 });
    fc.assert(
      fc.property(fc.array(list, { maxLength: 4 }), (lists) => {
        const one = decoder();
        one.decode(zeroTableSizeUpdate);
        for (const headers of lists) {
          const [half, rest] = [encodeHeaders(headers.slice(0, 3)), encodeHeaders(headers.slice(3))];
          assert.deepEqual(fields(one.decode(joinBlocks(half, rest).bytes)), headers);
        }
      }),
    );
  });

  test('rejects a header that cannot be sent, and names it', () => {
    for (const [name, value] of [
      ['Upper', 'x'],
      ['', 'x'],
      ['a b', 'x'],
      ['a', 'one\r\ntwo'],
      ['a', 'ŝ'],
      ['a', '\0'],
    ] as const) {
      assert.throws(() => encodeHeaders([[name, value]]), /Cannot send (a header of the name|the header a )/);
    }
  });
});
