import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../api/index.ts';
import type { StoredObject } from '../api/index.ts';
import { resizeCauses, resizeUpdate } from './resize.ts';

const amounts = (cpu: string, memory = '64Mi') => ({ cpu, memory });
const both = (cpu: string, memory?: string) => ({
  requests: amounts(cpu, memory),
  limits: amounts(cpu, memory),
});

function pod(spec: JsonObject): StoredObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', uid: 'u', resourceVersion: '1' },
    spec,
    status: {},
  } as unknown as StoredObject;
}

/** Validates the second pod as an update of the first. */
function complaints(before: JsonObject, after: JsonObject): readonly string[] {
  const old = pod(before);
  const next = resizeUpdate(old, pod(after) as unknown as JsonObject);
  return resizeCauses(old, next).map(({ field, message }) => `${field}: ${message}`);
}

const main = (cpu: string, memory?: string) => ({ name: 'main', image: 'i', resources: both(cpu, memory) });

test('accepts cpu and memory changes of containers, sidecars and init containers', () => {
  const spec = (cpu: string) => ({
    containers: [main(cpu)],
    initContainers: [
      { ...main(cpu), name: 'once' },
      { ...main(cpu), name: 'side', restartPolicy: 'Always' },
    ],
  });
  assert.deepEqual(complaints(spec('100m'), spec('200m')), []);
});

test('rejects RestartContainer for init containers that are not sidecars', () => {
  const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
  const spec = (cpu: string) => ({
    containers: [main('1')],
    initContainers: [{ ...main(cpu), name: 'once', resizePolicy }],
  });
  const [complaint] = complaints(spec('100m'), spec('200m'));
  assert.match(
    complaint ?? '',
    /^spec\.initContainers\[0\]: .*non-sidecar init containers with a resize policy of RestartContainer cannot be resized/,
  );
  assert.deepEqual(complaints(spec('100m'), spec('100m')), []);
});

test('rejects changes of the QoS class and removed resources', () => {
  const [classes] = complaints(
    { containers: [main('100m')] },
    { containers: [{ ...main('100m'), resources: { ...both('100m'), requests: amounts('50m') } }] },
  );
  assert.match(classes ?? '', /Pod QOS Class may not change as a result of resizing/);
  const removed = complaints(
    {
      containers: [{ name: 'main', image: 'i', resources: { requests: amounts('1'), limits: { cpu: '2' } } }],
    },
    { containers: [{ name: 'main', image: 'i', resources: { requests: amounts('1') } }] },
  );
  assert.match(
    removed[0] ?? '',
    /spec\.containers\[0\]\.resources\.limits: .*resource limits cannot be removed/,
  );
});

test('accepts changed pod-level resources, but not their removal', () => {
  const spec = (resources?: object) => ({
    containers: [{ name: 'main', image: 'i' }],
    ...(resources && { resources }),
  });
  assert.deepEqual(complaints(spec(both('1')), spec(both('2'))), []);
  assert.match(
    complaints(spec(both('1')), spec()).join(),
    /spec\.resources: .*pod-level resources cannot be removed/,
  );
});
