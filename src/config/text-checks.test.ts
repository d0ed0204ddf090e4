import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TextCheck } from './fields.ts';
import {
  checkCleanPath,
  checkCpuList,
  checkIpAddress,
  checkLabelValue,
  checkNetworks,
  checkNodeLabel,
  checkPreviousVersion,
  checkQualifiedName,
  checkTraceEndpoint,
  checkUnixEndpoint,
  checkUrl,
  isDnsSubdomain,
} from './text-checks.ts';

const cases: readonly (readonly [string, TextCheck, readonly string[], readonly string[]])[] = [
  [
    'an address',
    checkIpAddress,
    ['0.0.0.0', '::', 'fe80::1'],
    ['', 'localhost', '1.2.3', '1.2.3.4/8', '1.2.3.400'],
  ],
  [
    'networks',
    checkNetworks,
    ['', '10.0.0.0/8', '10.0.0.0/8,fd00::/64'],
    ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', 'x/8', '1.1.1.1/8/8'],
  ],
  ['a URL', checkUrl, ['', 'http://a', 'https://a/b?c'], ['a', '//a', 'ftp://a', 'file:///a']],
  [
    'a socket',
    checkUnixEndpoint,
    ['', 'unix:///run/x.sock', '/run/x.sock'],
    ['unix://run/x', 'tcp://1:2', 'run/x.sock', 'npipe:////./x', 'unix:////x'],
  ],
  ['a clean path', checkCleanPath, ['/', '/var/log/pods'], ['', 'a', './a', '/a/../b', '/a//b', '/a/', '/ä']],
  ['the version before', checkPreviousVersion, ['', '1.35'], ['1.36', '1.34', 'v1.35', '1']],
  ['CPUs', checkCpuList, ['', '0', '0-3', '0-3,7,9-9'], ['a', '3-0', '1,', '-1', '1-2-3', '0 - 3']],
  [
    'a collector',
    checkTraceEndpoint,
    ['localhost:4317', 'dns://a:1', 'unix:///run/x', 'unix-abstract://a'],
    ['http://a', 'https://a:1', 'a b'],
  ],
];

for (const [what, check, good, bad] of cases) {
  test(`distinguishes ${what} from similar invalid text`, () => {
    for (const text of good) assert.equal(check(text), undefined, text);
    for (const text of bad) assert.notEqual(check(text), undefined, text);
  });
}

test('accepts label and taint keys that the API accepts', () => {
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

test('rejects node labels in Kubernetes domains, except those that a node may set', () => {
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
