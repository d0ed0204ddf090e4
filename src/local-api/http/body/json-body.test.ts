import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StatusError } from '../../api/api-types.ts';
import { readJsonText } from './json-body.ts';

function duplicates(text: string): readonly string[] {
  return readJsonText(text).duplicates;
}

test('keys that are written twice are told with where they stand', () => {
  assert.deepEqual(duplicates('{"a":1,"b":{"a":2},"a":3}'), ['a']);
  assert.deepEqual(duplicates('{"s":{"c":[{"n":1},{"n":1,"x":[{}],"n":2}]}}'), ['s.c[1].n']);
  assert.deepEqual(duplicates('{"a":{"a":1},"b":["a","a"],"c":"a"}'), []);
});

test('the same key spelled in two ways is the same key', () => {
  assert.deepEqual(duplicates('{"a":1,"\\u0061":2}'), ['a']);
});

test('quotes, brackets and commas inside of texts mean nothing', () => {
  assert.deepEqual(duplicates('{"a":"{\\"a\\":1,\\"a\\":2}\\\\","b":"\\\\\\"","c":[",","[","{"]}'), []);
  assert.deepEqual(duplicates('{"a\\"":1,"a\\\\":2,"a\\"":3}'), ['a"']);
});

test('of very many only the first are told', () => {
  const text = `{${Array.from({ length: 1_000 }, (_, index) => `"a${index % 500}":1`).join(',')}}`;
  assert.equal(duplicates(text).length, 100);
});

test('nesting that would need too much stack is refused', () => {
  for (const deep of [200, 1_000_000])
    assert.throws(() => readJsonText('['.repeat(deep) + ']'.repeat(deep)), StatusError);
  assert.deepEqual(duplicates('['.repeat(100) + ']'.repeat(100)), []);
});

test('JSON without a key twice is read as it always is, and nothing is told', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(readJsonText(text), { value: JSON.parse(text), duplicates: [] });
    }),
  );
});

test('anything else is refused, in a message of one line', () => {
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
