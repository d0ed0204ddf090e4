import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalizeReference, parseImageReference } from './image-reference.ts';

const digest = `sha256:${'a'.repeat(64)}`;

test('image references are completed as by containerd', () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ['busybox', 'docker.io/library/busybox:latest'],
    ['busybox:1', 'docker.io/library/busybox:1'],
    ['team/app', 'docker.io/team/app:latest'],
    ['docker.io/busybox', 'docker.io/library/busybox:latest'],
    ['localhost/busybox:1', 'localhost/busybox:1'],
    ['example.com:5000/a/b:v1', 'example.com:5000/a/b:v1'],
    ['example.com:5000/a/b', 'example.com:5000/a/b:latest'],
    [`busybox:1@${digest}`, `docker.io/library/busybox@${digest}`],
    ['', undefined],
    ['UPPER', undefined],
    ['a b', undefined],
    ['busybox:', undefined],
    ['busybox@sha256:12', undefined],
  ];
  for (const [text, expected] of cases) assert.equal(normalizeReference(text), expected, text);
});

test('an invalid image reference is rejected with the reason', () => {
  assert.deepEqual(parseImageReference('UPPER'), {
    ok: false,
    why: 'invalid reference format: repository name must be lowercase',
  });
  assert.deepEqual(parseImageReference(''), { ok: false, why: 'invalid reference format' });
});
