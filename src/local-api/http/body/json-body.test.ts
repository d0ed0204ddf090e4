import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StatusError } from '../../api/api-types.ts';
import { readJsonText } from './json-body.ts';

function duplicates(text: string): readonly string[] {
  return readJsonText(text).duplicates;
}

test('reports duplicate JSON keys with their path', () => {
  assert.deepEqual(duplicates('{"a":1,"b":{"a":2},"a":3}'), ['a']);
  assert.deepEqual(duplicates('{"s":{"c":[{"n":1},{"n":1,"x":[{}],"n":2}]}}'), ['s.c[1].n']);
  assert.deepEqual(duplicates('{"a":{"a":1},"b":["a","a"],"c":"a"}'), []);
});

test('treats differently escaped spellings of a JSON key as the same key', () => {
  assert.deepEqual(duplicates('{"a":1,"\\u0061":2}'), ['a']);
});

test('ignores quotes, brackets and commas inside JSON strings', () => {
  assert.deepEqual(duplicates('{"a":"{\\"a\\":1,\\"a\\":2}\\\\","b":"\\\\\\"","c":[",","[","{"]}'), []);
  assert.deepEqual(duplicates('{"a\\"":1,"a\\\\":2,"a\\"":3}'), ['a"']);
});

test('reports a limited number of duplicate JSON keys', () => {
  const text = `{${Array.from({ length: 1_000 }, (_, index) => `"a${index % 500}":1`).join(',')}}`;
  assert.equal(duplicates(text).length, 100);
});

test('rejects JSON nesting that could overflow the stack', () => {
  for (const deep of [200, 1_000_000])
    assert.throws(() => readJsonText('['.repeat(deep) + ']'.repeat(deep)), StatusError);
  assert.deepEqual(duplicates('['.repeat(100) + ']'.repeat(100)), []);
});

test('parses JSON without duplicate keys like JSON.parse', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(readJsonText(text), { value: JSON.parse(text), duplicates: [] });
    }),
  );
});

test('rejects invalid JSON with a one-line message', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      try {
        readJsonText(text);
      } catch (error) {
        assert.ok(error instanceof StatusError);
        assert.doesNotMatch(error.message, /\n/);
      }
    }),
  );
});

test('rejects any text that is not JSON with a StatusError', () => {
  const text = fc.string({ unit: fc.constantFrom('{', '}', '[', ']', ',', ':', '"', '\\', 'a', '1', 'u') });
  fc.assert(
    fc.property(text, (garbage) => {
      try {
        assert.deepEqual(readJsonText(garbage).value, JSON.parse(garbage));
      } catch (error) {
        assert.ok(error instanceof StatusError, String(error));
      }
    }),
    { numRuns: 2_000 },
  );
});
