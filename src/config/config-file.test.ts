import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryConfigFiles } from '../../test/fakes/memory-config-files.ts';
import { Fingerprint } from './config-file.ts';

const { signal } = new AbortController();

async function fingerprintOf(...texts: readonly string[]): Promise<string> {
  const all = Object.fromEntries(texts.map((text, index) => [`/etc/${index}`, text]));
  const print = new Fingerprint(memoryConfigFiles(all));
  for (const [path, text] of Object.entries(all))
    assert.equal(await print.files.readFile(path, signal), text);
  return print.text;
}

test('computes the same fingerprint as the Go kubelet', async () => {
  const written = `---
kind: CredentialProviderConfig
apiVersion: kubelet.config.k8s.io/v1alpha1
providers:
  - name: test
    matchImages:
    - "registry.io/foobar"
    defaultCacheDuration: 10m
    apiVersion: credentialprovider.kubelet.k8s.io/v1alpha1
    args:
    - --v=5
    env:
    - name: FOO
      value: BAR`;
  const known = 'sha256:8a62755289ba50c4ca9495baab69eb861068503f8bd49b853e8ba6cf95c72bb8';
  assert.equal(await fingerprintOf(written), known);
});

test('changes the fingerprint when text moves from one file to another', async () => {
  assert.notEqual(await fingerprintOf('ab', 'c'), await fingerprintOf('a', 'bc'));
});
