import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseQuery, splitTarget } from './request-target.ts';

test('divides a request target at its first question mark', () => {
  const target = splitTarget('/api/v1/pods?a=1&a=2?&b=%20');
  assert.deepEqual([target.writtenPath, target.length], ['/api/v1/pods', 27]);
  assert.deepEqual(
    [...target.query],
    [
      ['a', '1'],
      ['a', '2?'],
      ['b', ' '],
    ],
  );
  assert.deepEqual([...splitTarget('/pods').query], []);
});

test('parses an ASCII query exactly as URLSearchParams does', () => {
  const piece = fc.constantFrom(
    'a',
    '=',
    '&',
    '+',
    '%',
    '%20',
    '%ff',
    '%c3',
    '%C3%BC',
    '%f0%9f',

    '\0',
    '2',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const text = pieces.join('');
      assert.deepEqual([...parseQuery(text)], [...new URLSearchParams(text)]);
    }),
    { numRuns: 2_000 },
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (text) => {
      assert.deepEqual([...parseQuery(text)], [...new URLSearchParams(`&${text}`)]);
    }),
  );
});

test('keeps non-ASCII characters of a query and replaces escapes that are not UTF-8', () => {
  assert.deepEqual(
    [...parseQuery('é=%c3%bc&é%=%ffé')],
    [
      ['é', 'ü'],
      ['é%', '\ufffdé'],
    ],
  );
});

test('parses a query of 500,000 names without a value in linear time', () => {
  const timeOf = (names: number) => {
    const text = 'a&'.repeat(names);
    const start = performance.now();
    assert.equal(parseQuery(text).size, names);
    return performance.now() - start;
  };
  timeOf(1_000);
  assert.ok(timeOf(500_000) < 1_500);
});
