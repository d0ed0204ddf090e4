import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedPaths } from './changed-paths.ts';

test('every field that differs is named, in lists by its place', () => {
  const before = { a: 1, b: { c: [1, { d: 2 }] }, e: 'x' };
  const after = { a: 1, b: { c: [1, { d: 3 }, 4] }, f: { g: 1 } };
  assert.deepEqual(changedPaths(before, after, 'spec'), ['spec.b.c[1].d', 'spec.b.c[2]', 'spec.e', 'spec.f']);
});

test('keys that users chose are set apart', () => {
  const before = { nodeSelector: { 'a.io/b': '1' } };
  assert.deepEqual(changedPaths(before, { nodeSelector: {} }, 'spec'), ['spec.nodeSelector[a.io/b]']);
});

test('of very many only the first are told', () => {
  const list = Array.from({ length: 30 }, (_, index) => index);
  const told = changedPaths(
    list,
    list.map((one) => one + 1),
    'l',
  );
  assert.equal(told.length, 21);
  assert.equal(told.at(-1), 'and 10 more');
});
