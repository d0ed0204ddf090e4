import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { yamlPieces } from './yaml-reply.ts';

const text = (value: unknown) => [...yamlPieces(value)].join('');

test('an object is written line by line', () => {
  const value = {
    kind: 'Pod',
    spec: { containers: [{ name: 'c', args: ['yes', 'a: b'], ports: [] }, null] },
  };
  assert.equal(
    text({ ...value, empty: {}, none: undefined, number: 1 }),
    'kind: Pod\nspec:\n  containers:\n    - name: c\n      args:\n        - "yes"\n        - "a: b"\n      ports: []\n    - null\nempty: {}\nnumber: 1\n',
  );
});

test('what is written is read as what it was', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value));
      assert.deepEqual(parse(text(plain), { version: '1.1', maxAliasCount: 0 }), plain);
    }),
    { numRuns: 500 },
  );
});

test('a long list comes in pieces, of which none is made before it is taken', () => {
  const items = Array.from({ length: 50_000 }, (_, index) => ({ name: `n${index}` }));
  const pieces = yamlPieces({ items });
  assert.ok((pieces.next().value ?? '').length < 70_000);
  assert.ok([...pieces].length > 10);
});
