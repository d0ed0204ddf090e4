import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAnswer } from './parse-answer.ts';

test('fields that are null are not set, however deep', () => {
  const text =
    '{"a":null,"b":[{"type":"x","lastTransitionTime":null},null,3],"c":{"d":{"e":null}},"f":"null","g":false}';
  assert.deepEqual(parseAnswer(text), { b: [{ type: 'x' }, null, 3], c: { d: {} }, f: 'null', g: false });
});

test('what has no nulls is as JSON has it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!/\bnull\b/.test(text));
      assert.deepEqual(parseAnswer(text), JSON.parse(text));
    }),
  );
});

test('a field may be called anything', () => {
  const parsed = parseAnswer('{"__proto__":{"a":null,"b":1},"c":null}') as object;
  assert.deepEqual(Object.entries(parsed), [['__proto__', { b: 1 }]]);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
});

test('what is no JSON throws', () => {
  assert.throws(() => parseAnswer('{"a":'));
});
