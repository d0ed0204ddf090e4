import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../../pods/index.ts';
import { ReasonCache } from './reason-cache.ts';

const uid = podUid('pod');

test('keeps a waiting reason until the container starts', () => {
  const cache = new ReasonCache();
  cache.update(uid, [{ container: 'a', started: false, reason: 'ErrImagePull', message: 'no' }]);
  assert.deepEqual(cache.get(uid, 'a'), { reason: 'ErrImagePull', message: 'no' });
  cache.update(uid, [{ container: 'a', started: true }]);
  assert.equal(cache.get(uid, 'a'), undefined);
});

test('evicts the oldest waiting reasons when the cache is full', () => {
  const cache = new ReasonCache(2);
  for (const container of ['a', 'b', 'c']) {
    cache.update(uid, [{ container, started: false, reason: 'R', message: '' }]);
  }
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => cache.get(uid, name)?.reason),
    [undefined, 'R', 'R'],
  );
});

test('drops the waiting reasons of a deleted pod, but not of a pod whose UID starts with the same text', () => {
  const cache = new ReasonCache();
  const other = podUid('pod-2');
  for (const each of [uid, other]) {
    cache.update(each, [{ container: 'a', started: false, reason: 'R', message: '' }]);
  }
  cache.forgetPod(uid);
  assert.deepEqual([cache.size, cache.get(other, 'a')?.reason], [1, 'R']);
});
