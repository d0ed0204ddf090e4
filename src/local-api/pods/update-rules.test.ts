import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredObject } from '../api/index.ts';
import { updateCauses } from './update-rules.ts';

function podWith(tolerations: readonly object[]): StoredObject {
  return { metadata: { name: 'a' }, spec: { containers: [], tolerations } } as unknown as StoredObject;
}

test('accepts new tolerations and other tolerationSeconds, and rejects a removed or changed toleration', () => {
  const [first, second] = [
    { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 },
    { key: 'b', operator: 'Equal', value: 'x' },
  ];
  const reasons = (next: readonly object[]) =>
    updateCauses(podWith([first, second]), podWith(next)).map(({ field }) => field);
  assert.deepEqual(
    reasons([second, { ...first, tolerationSeconds: 6 }, { key: 'c', operator: 'Exists' }]),
    [],
  );
  assert.deepEqual(reasons([first]), ['spec.tolerations']);
  assert.deepEqual(reasons([first, { ...second, value: 'y' }]), ['spec.tolerations']);
});

test('compares many tolerations in linear time', () => {
  const count = 2_000;
  let reads = 0;
  const tolerations = Array.from({ length: count }, (_, index) => ({
    get key() {
      reads++;
      return `k${index}`;
    },
    operator: 'Exists',
  }));
  assert.deepEqual(updateCauses(podWith(tolerations), podWith(tolerations)), []);
  assert.ok(reads < 20 * count, `${reads} reads`);
});
