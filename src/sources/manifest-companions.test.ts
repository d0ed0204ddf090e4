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
const place = { source: 'file', path: '/manifests/web.yaml', nodeName: 'n' } as const;

function read(apiReferences: 'allowed' | 'refused', bytes = text) {
  return new ManifestReader({ enabled: () => true, apiReferences }).read(Buffer.from(bytes), place);
}

test('where pods may use objects of the API, their manifests may lie beside them', async () => {
  const { pods, problems, whole } = await read('allowed');
  assert.deepEqual(problems, []);
  assert.equal(whole, true);
  assert.deepEqual(
    pods.map(({ pod }) => pod.metadata.name),
    ['web-n'],
  );
});

test('a manifest of such objects alone asks for no pods, and is whole', async () => {
  const only =
    'apiVersion: v1\nkind: List\nitems:\n  - {apiVersion: v1, kind: Secret, metadata: {name: s}}\n';
  assert.deepEqual(await read('allowed', only), { pods: [], problems: [], whole: true });
});

test('elsewhere they are mistakes, and so is every other kind', async () => {
  const { problems, whole } = await read('refused');
  assert.equal(whole, false);
  assert.match(problems[0]?.message ?? '', /must be Pod: current value is "ConfigMap"/);
  const other = await read('allowed', 'apiVersion: v1\nkind: Service\nmetadata: {name: s}\n');
  assert.match(other.problems[0]?.message ?? '', /must be Pod: current value is "Service"/);
});
