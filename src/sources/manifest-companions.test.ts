import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManifestReader } from './manifest.ts';

const text = `
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {a: b}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - {name: main, image: i, volumeMounts: [{name: words, mountPath: /words}]}
  volumes: [{name: words, configMap: {name: words}}]
`;
const path = { source: 'file', path: '/manifests/web.yaml', nodeName: 'n' } as const;

function read(apiReferences: 'allowed' | 'refused', bytes = text) {
  return new ManifestReader({ enabled: () => true, apiReferences }).read(Buffer.from(bytes), path);
}

test('accepts ConfigMaps beside pods when static pods may refer to API objects', async () => {
  const { pods, problems, complete } = await read('allowed');
  assert.deepEqual(problems, []);
  assert.equal(complete, true);
  assert.deepEqual(
    pods.map(({ pod }) => pod.metadata.name),
    ['web-n'],
  );
});

test('a manifest that contains only a Secret is complete, defines no pods and causes no problem report', async () => {
  const only =
    'apiVersion: v1\nkind: List\nitems:\n  - {apiVersion: v1, kind: Secret, metadata: {name: s}}\n';
  assert.deepEqual(await read('allowed', only), { pods: [], problems: [], complete: true });
});

test('rejects ConfigMaps when static pods may not refer to API objects, and a Service always', async () => {
  const { problems, complete } = await read('refused');
  assert.equal(complete, false);
  assert.match(problems[0]?.message ?? '', /must be Pod: current value is "ConfigMap"/);
  const other = await read('allowed', 'apiVersion: v1\nkind: Service\nmetadata: {name: s}\n');
  assert.match(other.problems[0]?.message ?? '', /must be Pod: current value is "Service"/);
});
