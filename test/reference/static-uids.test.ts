import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { initContainersOf } from '../../src/pods/index.ts';
import { specHash } from '../../src/runtime/containers/spec-hash.ts';
import { type ManifestOrigin, ManifestReader } from '../../src/sources/index.ts';

/**
 * Manifests with the UIDs and hashes that the functions of the Go kubelet, version 1.36.4, computed
 * from them. Never change a UID here: it would restart that static pod on every node with kubeling,
 * and whenever a node switches between the Go kubelet and kubeling.
 */
const folder = new URL('./manifests/', import.meta.url);
const url = 'http://manifests.example/pods?node=a';

interface Reference {
  readonly manifest: string;
  /**
   * Where the manifest was read; by default the manifest directory of a kubeadm node named node-a.
   */
  readonly place?: Partial<ManifestOrigin>;
  /** The UIDs of the manifest's pods in their order. */
  readonly uids: readonly string[];
  /** The hashes of the manifest's containers, init containers first. */
  readonly hashes: readonly string[];
}

const references: readonly Reference[] = [
  {
    manifest: 'amounts.yaml',
    uids: ['38b2934335829fc52a91811c376eabce'],
    hashes: ['2db8e762', 'e34f143', '89517f88', '1ba5add1', '4bd2ef16'],
  },
  { manifest: 'environment.yaml', uids: ['6a953321f176d78d6cc93b26dd56749f'], hashes: ['12214ab0'] },
  { manifest: 'etcd.yaml', uids: ['e5d33cfac1b220d54c419130e031fe3e'], hashes: ['f46469c9'] },
  { manifest: 'in-json.json', uids: ['679a65043637e98a8272480e1c056179'], hashes: ['77fb19c2'] },
  {
    manifest: 'init-and-sidecar.yaml',
    uids: ['c5e795d1b91af8180e4532661e8fb53f'],
    hashes: ['8c604e00', '5102cf30', '12214ab0'],
  },
  { manifest: 'kube-apiserver.yaml', uids: ['4b9315db78fe4b555b074650400bbc55'], hashes: ['98c62e8d'] },
  {
    manifest: 'kube-controller-manager.yaml',
    uids: ['e2a89771567412db099f5b9c013403d3'],
    hashes: ['344213df'],
  },
  { manifest: 'kube-scheduler.yaml', uids: ['8fa8cd64f4c2170b36294d2436336c69'], hashes: ['ee284a25'] },
  { manifest: 'life.yaml', uids: ['9fdef3f90a20ee293c6720aaf435d55d'], hashes: ['12214ab0'] },
  { manifest: 'lived-before.yaml', uids: ['aaf7c60c252c7fb86396f224e024f4c8'], hashes: ['12214ab0'] },
  { manifest: 'nulls.yaml', uids: ['f1109d5e7691233cb892bc4dbb00e648'], hashes: ['af286efb', 'a907686'] },
  {
    manifest: 'on-the-network.yaml',
    uids: ['6e247e87ca6b7a1f39f721b2d6bcad81'],
    hashes: ['8c604e00', '12214ab0'],
  },
  { manifest: 'own-uid.yaml', uids: ['01234567-89ab-cdef-0123-456789abcdef'], hashes: ['12214ab0'] },
  { manifest: 'placement.yaml', uids: ['33b1993a8fea444466b9d04032d6c6cc'], hashes: ['12214ab0'] },
  { manifest: 'plain.yaml', uids: ['e8e8c96c0095c955a28b482ce9730841'], hashes: ['b34e1a14'] },
  {
    manifest: 'plain.yaml',
    place: { source: 'http', path: url },
    uids: ['3fe1c54c5644fe4fc25150222e7733ad'],
    hashes: ['b34e1a14'],
  },
  {
    manifest: 'plain.yaml',
    place: { nodeName: 'node-b.example' },
    uids: ['a5e27748f62e6d198cd66709ef19c906'],
    hashes: ['b34e1a14'],
  },
  { manifest: 'probes.yaml', uids: ['8fae88082199dd90b308b3b4b4ceadb9'], hashes: ['12214ab0', '3e1e983e'] },
  { manifest: 'security.yaml', uids: ['db25559b308682fa98ef7ec5fd34788a'], hashes: ['12214ab0'] },
  {
    manifest: 'several.yaml',
    place: { source: 'http', path: url },
    uids: ['ddfc1fb50f60c4d5774fdba66f3932e7', 'ad45d0f173f931ea9ae65d03076f9162'],
    hashes: ['12214ab0', '12214ab0'],
  },
  { manifest: 'volumes.yaml', uids: ['fd313b16186b568ed2abbf2ff3515af4'], hashes: ['12214ab0'] },
  {
    manifest: 'whole-pod-amounts.yaml',
    uids: ['8cd5eda417d886018724002d183c32b1'],
    hashes: ['5102cf30', '8c604e00', '2db8e762', 'e34f143'],
  },
  { manifest: 'words.yaml', uids: ['734fcb11ea077ab8322e1a0a692cc13d'], hashes: ['a6f8a341', 'a907686'] },
];

for (const { manifest, place, uids, hashes } of references) {
  const {
    nodeName = 'node-a',
    source = 'file',
    path = `/etc/kubernetes/manifests/${manifest}`,
  } = place ?? {};
  test(`${manifest} at ${path} on ${nodeName} gives the UIDs and container hashes of the Go kubelet`, async () => {
    const reader = new ManifestReader({ enabled: () => true, apiReferences: 'refused' });
    const bytes = await readFile(new URL(manifest, folder));
    const { pods, problems } = await reader.read(bytes, { source, path, nodeName });
    assert.deepEqual(problems, []);
    assert.deepEqual(
      pods.map(({ pod }) => pod.metadata.uid),
      uids,
    );
    assert.deepEqual(
      pods.map(({ pod }) => pod.metadata.annotations?.['kubernetes.io/config.hash']),
      uids,
    );
    const containers = pods.flatMap(({ pod }) => [...initContainersOf(pod), ...pod.spec.containers]);
    assert.deepEqual(containers.map(specHash), hashes);
  });
}

test('every manifest in the manifests directory has an expectation in this test', async () => {
  const names = new Set(references.map(({ manifest }) => manifest));
  assert.deepEqual((await readdir(folder)).sort(), [...names].sort());
});
