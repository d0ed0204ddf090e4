import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../kinds/index.ts';
import { labelChanges, labelMemory, labelsOf, ownLabelsAnnotation, taintDrift } from './node-object.ts';

const settings = { hostname: 'n1', architecture: 'amd64', labels: {} };
const defaults = {
  'kubernetes.io/hostname': 'n1',
  'kubernetes.io/os': 'linux',
  'kubernetes.io/arch': 'amd64',
  'beta.kubernetes.io/os': 'linux',
  'beta.kubernetes.io/arch': 'amd64',
};
function node(labels: Record<string, string>, remembered?: string): Node {
  const annotations = remembered === undefined ? {} : { [ownLabelsAnnotation]: remembered };
  return { metadata: { name: 'n1', labels: { ...defaults, ...labels }, annotations } };
}

test('does not change a complete Node', () => {
  assert.deepEqual(labelChanges(node({ other: 'x' }), settings), {});
});

test('sets the configured labels of a node, which take precedence over the default ones', () => {
  const wished = { ...settings, labels: { pool: 'a', 'kubernetes.io/hostname': 'other' } };
  assert.deepEqual(labelChanges(node({ pool: 'b' }), wished), {
    pool: 'a',
    'kubernetes.io/hostname': 'other',
  });
});

test('removes a label that is not configured any more if no other client changed its value', () => {
  const memory = labelMemory({ ...settings, labels: { pool: 'a', zone: 'z' } });
  assert.equal(memory, '{"pool":"a","zone":"z"}');
  assert.deepEqual(labelChanges(node({ pool: 'a', zone: 'changed' }, memory), settings), { pool: null });
  assert.deepEqual(labelChanges(node({ zone: 'z' }, memory), { ...settings, labels: { zone: 'z' } }), {});
});

test('ignores the annotation that records the configured labels if its value is invalid', () => {
  for (const text of ['{', 'null', '7', '[1]']) assert.deepEqual(labelsOf(node({}, text)), {});
  assert.deepEqual(labelsOf(node({}, '{"a":1,"b":"x"}')), { b: 'x' });
  assert.equal(labelMemory(settings), undefined);
});

test('lists the configured taints that an existing Node lacks or has with another value', () => {
  const existing: Node = {
    spec: {
      taints: [
        { key: 'a', value: 'other', effect: 'NoSchedule' },
        { key: 'c', effect: 'NoExecute' },
      ],
    },
  };
  const wished = [
    { key: 'a', value: '1', effect: 'NoSchedule' },
    { key: 'b', effect: 'NoExecute' },
    { key: 'c', value: '', effect: 'NoExecute' },
  ];
  assert.deepEqual(taintDrift(existing, wished), [
    'a=1:NoSchedule has the value "other"',
    'b=:NoExecute is missing',
  ]);
});
