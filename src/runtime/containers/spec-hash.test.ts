import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { specHash } from './spec-hash.ts';

test('the spec hash of a container equals that of the Go kubelet', () => {
  assert.equal(specHash({ name: 'test_container', image: 'foo/image:v1' }), '8e45cbd0');
});

test('the spec hash of a container depends only on its name and image', () => {
  const plain = specHash({ name: 'a', image: 'b' });
  assert.equal(specHash({ name: 'a', image: 'b', command: ['sh'], env: [{ name: 'X', value: '1' }] }), plain);
  assert.notEqual(specHash({ name: 'a', image: 'c' }), plain);
  assert.notEqual(specHash({ name: 'b', image: 'b' }), plain);
});

test('a container without an image has a spec hash', () => {
  assert.equal(specHash({ name: 'a' }), specHash({ name: 'a', image: '' }));
});

test('the spec hash of any name and image has at most eight hexadecimal digits', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ unit: 'grapheme' }), (name, image) => {
      assert.match(specHash({ name, image }), /^(?:0|[1-9a-f][0-9a-f]{0,7})$/);
    }),
  );
});
