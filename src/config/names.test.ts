import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkLabelValue, checkNodeLabel, checkQualifiedName, isDnsSubdomain } from './names.ts';

test('names are taken as the API takes them', () => {
  for (const good of [
    'a',
    'a.b-c_D',
    'example.com/a',
    'x'.repeat(63),
    `${'a'.repeat(60)}.com/${'x'.repeat(63)}`,
  ]) {
    assert.equal(checkQualifiedName(good), undefined, good);
  }
  for (const bad of ['', '-a', 'a-', 'a/b/c', '/a', 'a/', 'A_B/c', 'a b', 'ä', 'x'.repeat(64)]) {
    assert.notEqual(checkQualifiedName(bad), undefined, bad);
  }
  for (const good of ['', 'a', 'A.b_c-1', '1']) assert.equal(checkLabelValue(good), undefined, good);
  for (const bad of ['-', 'a.', 'a b', 'a/b', 'x'.repeat(64)])
    assert.notEqual(checkLabelValue(bad), undefined, bad);
  assert.ok(isDnsSubdomain('node-1.example.com'));
  for (const bad of ['', 'Node', 'a..b', 'a_b', '-a', 'a'.repeat(254)]) assert.ok(!isDnsSubdomain(bad), bad);
});

test('a node may not give itself the labels of Kubernetes, except some', () => {
  const allowed = [
    'mine',
    'example.com/role',
    'notkubernetes.io/a',
    'kubernetes.io/hostname',
    'topology.kubernetes.io/zone',
    'node.kubernetes.io/anything',
    'sub.node.kubernetes.io/anything',
    'kubelet.kubernetes.io/anything',
  ];
  for (const key of allowed) assert.equal(checkNodeLabel(key), undefined, key);
  const forbidden = [
    'kubernetes.io/role',
    'node-role.kubernetes.io/master',
    'k8s.io/a',
    'x.k8s.io/a',
    'foo.kubernetes.io/a',
  ];
  for (const key of forbidden) assert.match(checkNodeLabel(key) ?? '', /must not set/, key);
});
