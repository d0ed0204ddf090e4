import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindTable } from '../../../kinds/index.ts';
import { ZeroValueFilter } from './zero-values.ts';

const silent = new ZeroValueFilter(new KindTable());

test('drops empty lists, maps and zero values', () => {
  const metadata = { name: 'a', generateName: '', labels: {}, finalizers: [] };
  assert.deepEqual(silent.filter('ConfigMap', { metadata, data: {}, binaryData: {} }), {
    metadata: { name: 'a' },
  });
});

test('keeps zero values that are meaningful', () => {
  const map = { metadata: { deletionGracePeriodSeconds: 0 }, immutable: false, data: { key: '' } };
  assert.deepEqual(silent.filter('ConfigMap', map), map);
});

test('keeps required fields, and nullable fields of inlined kinds', () => {
  const spec = {
    containers: [],
    hostNetwork: false,
    ephemeralContainers: [{ name: 'e', restartPolicy: '', stdin: false }],
  };
  assert.deepEqual(silent.filter('PodSpec', spec), {
    containers: [],
    ephemeralContainers: [{ name: 'e', restartPolicy: '' }],
  });
});
