import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAnswer } from './parse-answer.ts';

test('removes fields that are null at any depth', () => {
  const text =
    '{"a":null,"b":[{"type":"x","lastTransitionTime":null},null,3],"c":{"d":{"e":null}},"f":"null","g":false}';
  assert.deepEqual(parseAnswer(text), { b: [{ type: 'x' }, null, 3], c: { d: {} }, f: 'null', g: false });
});

test('parses text without nulls as JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!/\bnull\b/.test(text));
      assert.deepEqual(parseAnswer(text), JSON.parse(text));
    }),
  );
});

test('accepts any field name', () => {
  const parsed = parseAnswer('{"__proto__":{"a":null,"b":1},"c":null}') as object;
  assert.deepEqual(Object.entries(parsed), [['__proto__', { b: 1 }]]);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
});

test('rejects text that is not JSON', () => {
  assert.throws(() => parseAnswer('{"a":'));
});
