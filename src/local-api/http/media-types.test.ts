import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { acceptedTypes, readMediaType } from './media-types.ts';

function essences(header: string): readonly string[] {
  return acceptedTypes(header).map(({ essence }) => essence);
}

test('what is wanted most comes first; of equals the one written first', () => {
  assert.deepEqual(essences('a/a;q=0.2, b/b, c/c;q=0.2,d/d ; q=0.9'), ['b/b', 'd/d', 'a/a', 'c/c']);
});

test('what is not wanted, and what is no type, is left out', () => {
  assert.deepEqual(essences('a/a;q=0, b, , c/c;q=x, D/D;q=7'), ['d/d']);
});

test('parameters are read, with quotes or without', () => {
  const { parameters } =
    readMediaType('application/json; as=Table;V="v1" ;g=meta.k8s.io;flag') ?? assert.fail();
  assert.deepEqual(
    [...parameters],
    [
      ['as', 'Table'],
      ['v', 'v1'],
      ['g', 'meta.k8s.io'],
      ['flag', ''],
    ],
  );
});

test('whatever a header says, it is read', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      acceptedTypes(text);
      readMediaType(text);
    }),
  );
});
