import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindTable } from '../../../kinds/index.ts';
import { SilentFields } from './zero-values.ts';

const silent = new SilentFields(new KindTable());

test('empty lists, maps and values that say nothing are dropped', () => {
  const metadata = { name: 'a', generateName: '', labels: {}, finalizers: [] };
  assert.deepEqual(silent.without('ConfigMap', { metadata, data: {}, binaryData: {} }), {
    metadata: { name: 'a' },
  });
});

test('what says something stays, however little it is', () => {
  const map = { metadata: { deletionGracePeriodSeconds: 0 }, immutable: false, data: { key: '' } };
  assert.deepEqual(silent.without('ConfigMap', map), map);
});

test('fields that are always shown stay, and inlined kinds tell what they tell elsewhere', () => {
  const spec = {
    containers: [],
    hostNetwork: false,
    ephemeralContainers: [{ name: 'e', restartPolicy: '', stdin: false }],
  };
  assert.deepEqual(silent.without('PodSpec', spec), {
    containers: [],
    ephemeralContainers: [{ name: 'e', restartPolicy: '' }],
  });
});
