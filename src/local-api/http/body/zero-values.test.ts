import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindTable } from '../../../kinds/index.ts';
import { ZeroValueFilter } from './zero-values.ts';

const silent = new ZeroValueFilter(new KindTable());

test('removes empty lists, maps and zero values from an object', () => {
  const metadata = { name: 'a', generateName: '', labels: {}, finalizers: [] };
  assert.deepEqual(silent.filter('ConfigMap', { metadata, data: {}, binaryData: {} }), {
    metadata: { name: 'a' },
  });
});

test('keeps zero values of fields for which zero differs from unset', () => {
  const map = { metadata: { deletionGracePeriodSeconds: 0 }, immutable: false, data: { key: '' } };
  assert.deepEqual(silent.filter('ConfigMap', map), map);
});

test('keeps required fields, and nullable fields of inlined kinds, although they are zero', () => {
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
