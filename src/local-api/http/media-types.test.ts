import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { acceptedTypes, readMediaType } from './media-types.ts';

function essences(header: string): readonly string[] {
  return acceptedTypes(header).map(({ essence }) => essence);
}

test('sorts the types of an Accept header by quality, then by position', () => {
  assert.deepEqual(essences('a/a;q=0.2, b/b, c/c;q=0.2,d/d ; q=0.9'), ['b/b', 'd/d', 'a/a', 'c/c']);
});

test('omits types with quality 0 and malformed types from an Accept header', () => {
  assert.deepEqual(essences('a/a;q=0, b, , c/c;q=x, D/D;q=7'), ['d/d']);
});

test('parses quoted and unquoted parameters of a media type', () => {
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

test('parses random Accept headers without throwing', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      acceptedTypes(text);
      readMediaType(text);
    }),
  );
});
