import assert from 'node:assert/strict';
import { test } from 'node:test';
import { estimateSize } from './stored-object.ts';

test('counts nested values of an object', () => {
  const text = 'x'.repeat(1_000_000);
  for (const value of [text, { a: text }, [[{ a: { b: [text] } }]]]) {
    const size = estimateSize(value);
    assert.ok(size >= 1_000_000 && size < 1_001_000, String(size));
  }
});

test('sums the sizes of many small values', () => {
  assert.ok(estimateSize(Array.from({ length: 10_000 }, (_, index) => ({ index }))) > 400_000);
  assert.ok(estimateSize({ a: 1, b: null, c: true }) < 200);
});

test('counts the length of field names', () => {
  const wide = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, index) => [`${index}`.padEnd(250, 'k'), '']),
  );
  assert.ok(estimateSize(wide) > 250_000);
});
