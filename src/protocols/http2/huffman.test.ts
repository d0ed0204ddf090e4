import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Http2Error } from './frames.ts';
import { decodeHuffman } from './huffman.ts';

const decode = (hex: string) => {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  return decodeHuffman(bytes, 0, bytes.length);
};

test('decodes the Huffman examples of RFC 7541', () => {
  const examples = {
    'f1e3 c2e5 f23a 6ba0 ab90 f4ff': 'www.example.com',
    'a8eb 1064 9cbf': 'no-cache',
    '25a8 49e9 5ba9 7d7f': 'custom-key',
    '25a8 49e9 5bb8 e8b4 bf': 'custom-value',
    '6402': '302',
    'aec3 771a 4b': 'private',
    'd07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff': 'Mon, 21 Oct 2013 20:13:21 GMT',
    '9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3': 'https://www.example.com',
    '640e ff': '307',
    '9bd9 ab': 'gzip',
    '94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07':
      'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  };
  for (const [hex, text] of Object.entries(examples)) assert.equal(decode(hex), text);
});

test('decodes Huffman codes of every length', () => {
  assert.equal(decode(''), '');
  assert.equal(decode('07'), '0');
  // 13 bits for NUL, 23 for SOH, 19 for the backslash, 20 for 0x80, 30 for a line feed; then ones
  // as padding.
  for (const [bits, text] of [
    ['1111111111000', '\0'],
    ['11111111111111111011000', '\x01'],
    ['1111111111111110000', '\\'],
    ['11111111111111100110', '\x80'],
    ['111111111111111111111111111100', '\n'],
    ['11111111111111111111101110', '\xff'],
  ] as const) {
    assert.equal(decode(hexOf(bits)), text);
    assert.equal(decode(hexOf(bits + bits)), text + text);
  }
});

function hexOf(bits: string): string {
  const filled = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
  return (filled.match(/.{8}/g) ?? [])
    .map((byte) => Number.parseInt(byte, 2).toString(16).padStart(2, '0'))
    .join('');
}

test('accepts only Huffman padding that is shorter than a byte and all ones', () => {
  for (const hex of ['ff', 'ffff', '07ff', '00', '06', 'ffff ffff', 'f1e3 c2']) {
    assert.throws(
      () => decode(hex),
      (error) => error instanceof Http2Error && error.reason === 'COMPRESSION_ERROR',
      hex,
    );
  }
});

test('decodes any bytes to text or reports a compression error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        assert.ok(decodeHuffman(bytes, 0, bytes.length).length <= (bytes.length * 8) / 5);
      } catch (error) {
        assert.ok(error instanceof Http2Error, String(error));
      }
    }),
    { numRuns: 2_000 },
  );
});
