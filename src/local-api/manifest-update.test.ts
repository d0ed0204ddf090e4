import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredObject } from './core/index.ts';
import { updateFrom } from './manifest-update.ts';

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

test('what the binding wrote stays, and what people wrote besides is gone', () => {
  const marks = { 'pv.kubernetes.io/bound-by-controller': 'yes', note: 'by hand' };
  const wanted = written({ capacity: { storage: '1Gi' } }, { own: 'a' });
  assert.deepEqual(updateFrom(wanted, stored({ capacity: { storage: '2Gi' }, claimRef }, marks)), {
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

test('a claim that is named without its uid is the one that is bound, another name is another claim', () => {
  const named = { namespace: 'default', name: 'c' };
  assert.deepEqual(updateFrom(written({ claimRef: named }), stored({ claimRef }))['spec'], { claimRef });
  const other = { namespace: 'default', name: 'd' };
  assert.deepEqual(updateFrom(written({ claimRef: other }), stored({ claimRef }))['spec'], {
    claimRef: other,
  });
});

test('a claim keeps its volume and its class unless the file names others', () => {
  const before = stored({ volumeName: 'v', storageClassName: 'usual' });
  assert.deepEqual(updateFrom(written({ accessModes: ['ReadWriteOnce'] }), before)['spec'], {
    accessModes: ['ReadWriteOnce'],
    volumeName: 'v',
    storageClassName: 'usual',
  });
  assert.deepEqual(updateFrom(written({ volumeName: 'w', storageClassName: '' }), before)['spec'], {
    volumeName: 'w',
    storageClassName: '',
  });
});
