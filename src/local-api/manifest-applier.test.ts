import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalApiRig } from '../../test/fakes/local-api-rig.ts';
import { apiResources } from '../api/index.ts';
import { KindTable } from '../kinds/index.ts';
import type { StoredObject } from './api/index.ts';
import { createManifestApplier, mergeServerFields } from './manifest-applier.ts';

const table = new KindTable();

test('names a manifest object by plural, namespace and name', () => {
  using rig = new LocalApiRig();
  const { nameOf } = createManifestApplier(rig.api.context, rig.catalogue, table);
  assert.equal(nameOf({ kind: 'ConfigMap', metadata: { name: 'a' } }), 'configmaps/default/a');
  assert.equal(nameOf({ kind: 'PersistentVolume', metadata: { name: 'v' } }), 'persistentvolumes//v');
});

test('rejects a manifest object without a name', () => {
  using rig = new LocalApiRig();
  const { nameOf, apply } = createManifestApplier(rig.api.context, rig.catalogue, table);
  const refused = (current: string) => ({
    code: 'API_INVALID',
    message: `Cannot use a Secret: metadata.name must be a name: current value is ${current}`,
  });
  assert.throws(() => nameOf({ kind: 'Secret' }), refused('none'));
  assert.throws(() => nameOf({ kind: 'Secret', metadata: { name: 7 } }), refused('7'));
  assert.throws(() => apply({ kind: 'Secret', metadata: { name: '' } }, 'a.yaml'), refused('""'));
});

test('decodes manifest objects strictly and normalizes them', () => {
  using rig = new LocalApiRig();
  const { apply } = createManifestApplier(rig.api.context, rig.catalogue, table);
  const written = (kind: string, more: object) => () =>
    apply({ apiVersion: 'v1', kind, metadata: { name: 'a' }, ...more }, 'a.yaml');
  const about = (kind: string) => `${kind} in version "v1" cannot be handled as a ${kind}: `;
  assert.throws(written('ConfigMap', { data: { port: 8080 } }), {
    message: `${about('ConfigMap')}data[port] must be a string (put it in quotes): current value is a number`,
  });
  assert.throws(written('ConfigMap', { dta: {} }), {
    message: `${about('ConfigMap')}strict decoding error: unknown field "dta"`,
  });
  assert.throws(written('PersistentVolume', { spec: { accessModes: 'ReadWriteOnce' } }), {
    message: `${about('PersistentVolume')}spec.accessModes must be a list: current value is a string`,
  });
  assert.throws(written('Secret', { apiVersion: 'v2' }), {
    message: 'the API version in the data (v2) does not match the expected API version (v1)',
  });
  written('PersistentVolume', { spec: { capacity: { storage: '1024Mi' } } })();
  const volume = rig.api.context.objects.get(apiResources.persistentVolumes, undefined, 'a');
  assert.deepEqual(volume?.spec?.['capacity'], { storage: '1Gi' });
});

const stored = (
  spec: Readonly<Record<string, unknown>>,
  annotations: Record<string, string> = {},
): StoredObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: {
    name: 'v',
    uid: 'u',
    resourceVersion: '7',
    creationTimestamp: '2026-01-01T00:00:00Z',
    finalizers: ['kubernetes.io/pv-protection'],
    annotations,
  },
  spec,
});

const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: 'x' };
const written = (spec: object, annotations?: object) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'v', ...(annotations === undefined ? {} : { annotations }) },
  spec,
});

test('applying a manifest keeps the volume fields that the volume controller has set, and reverts other changes', () => {
  const marks = { 'pv.kubernetes.io/bound-by-controller': 'yes', note: 'by hand' };
  const wanted = written({ capacity: { storage: '1Gi' } }, { own: 'a' });
  assert.deepEqual(mergeServerFields(wanted, stored({ capacity: { storage: '2Gi' }, claimRef }, marks)), {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: 'v',
      finalizers: ['kubernetes.io/pv-protection'],
      annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes', own: 'a' },
    },
    spec: { capacity: { storage: '1Gi' }, claimRef },
  });
});

test('keeps the bound claimRef of a volume if the manifest names the same claim without a UID', () => {
  const named = { namespace: 'default', name: 'c' };
  assert.deepEqual(mergeServerFields(written({ claimRef: named }), stored({ claimRef }))['spec'], {
    claimRef,
  });
  const other = { namespace: 'default', name: 'd' };
  assert.deepEqual(mergeServerFields(written({ claimRef: other }), stored({ claimRef }))['spec'], {
    claimRef: other,
  });
});

test('keeps volumeName and class of a claim unless the manifest sets them', () => {
  const before = stored({ volumeName: 'v', storageClassName: 'usual' });
  assert.deepEqual(mergeServerFields(written({ accessModes: ['ReadWriteOnce'] }), before)['spec'], {
    accessModes: ['ReadWriteOnce'],
    volumeName: 'v',
    storageClassName: 'usual',
  });
  assert.deepEqual(mergeServerFields(written({ volumeName: 'w', storageClassName: '' }), before)['spec'], {
    volumeName: 'w',
    storageClassName: '',
  });
});
