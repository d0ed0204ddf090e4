import assert from 'node:assert/strict';
import { test } from 'node:test';
import { roughSize } from './stored-object.ts';

test('what is in an object counts, however deep', () => {
  const text = 'x'.repeat(1_000_000);
  for (const value of [text, { a: text }, [[{ a: { b: [text] } }]]]) {
    const size = roughSize(value);
    assert.ok(size >= 1_000_000 && size < 1_001_000, String(size));
  }
});

test('many small things make a large one', () => {
  assert.ok(roughSize(Array.from({ length: 10_000 }, (_, index) => ({ index }))) > 400_000);
  assert.ok(roughSize({ a: 1, b: null, c: true }) < 200);
});
