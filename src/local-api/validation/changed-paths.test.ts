import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedPaths } from './changed-paths.ts';

test('returns the path of every difference between two objects, with list indexes', () => {
  const before = { a: 1, b: { c: [1, { d: 2 }] }, e: 'x' };
  const after = { a: 1, b: { c: [1, { d: 3 }, 4] }, f: { g: 1 } };
  assert.deepEqual(changedPaths(before, after, 'spec'), ['spec.b.c[1].d', 'spec.b.c[2]', 'spec.e', 'spec.f']);
});

test('puts map keys with special characters in brackets', () => {
  const before = { nodeSelector: { 'a.io/b': '1' } };
  assert.deepEqual(changedPaths(before, { nodeSelector: {} }, 'spec'), ['spec.nodeSelector[a.io/b]']);
});

test('limits the number of returned paths', () => {
  const list = Array.from({ length: 30 }, (_, index) => index);
  const reported = changedPaths(
    list,
    list.map((each) => each + 1),
    'l',
  );
  assert.equal(reported.length, 21);
  assert.equal(reported.at(-1), 'and 10 more');
});
