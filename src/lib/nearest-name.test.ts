import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { didYouMean, editDistance, nearestName } from './nearest-name.ts';

const known = ['maxPods', 'podPidsLimit', 'port', 'readOnlyPort', 'registerNode'];

test('suggests the intended name for a typing error', () => {
  for (const [written, meant] of [
    ['maxPod', 'maxPods'],
    ['max_pods', 'maxPods'],
    ['MAXPODS', 'maxPods'],
    ['maxPosd', 'maxPods'],
    ['prot', 'port'],
    ['readonlyPort', 'readOnlyPort'],
    ['registerNodes', 'registerNode'],
  ] as const) {
    assert.equal(nearestName(written, known), meant, written);
  }
});

test('an unrelated word gets no suggestion', () => {
  assert.equal(nearestName('colour', known), undefined);
  assert.equal(nearestName('', known), undefined);
  assert.equal(nearestName('anything', []), undefined);
  assert.equal(didYouMean('colour', known), '');
  assert.equal(didYouMean('maxPod', known), ' (did you mean maxPods?)');
});

test('the edit distance is symmetric, zero for equal words and at most the length of the longer word', () => {
  assert.equal(editDistance('kitten', 'sitting'), 3);
  assert.equal(editDistance('ab', 'ba'), 1);
  assert.equal(editDistance('', 'abc'), 3);
  const word = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      assert.equal(editDistance(a, b), editDistance(b, a));
      assert.equal(editDistance(a, a), 0);
      assert.ok(editDistance(a, b) <= Math.max(a.length, b.length));
    }),
  );
});
