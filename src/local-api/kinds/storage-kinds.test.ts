import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindsRig, named } from '../../../test/fakes/kinds-rig.ts';
import { refusedWith } from '../../../test/fakes/local-api-rig.ts';
import { apiResources } from '../../api/index.ts';
import { serverResources } from '../api/index.ts';

const { persistentVolumes, persistentVolumeClaims, runtimeClasses, csiNodes, csiDrivers } = apiResources;
const { storageClasses } = serverResources;

test('validates a volume, sets its defaults and protects it while it is bound', async () => {
  using harness = new KindsRig();
  assert.equal(
    await harness.refusal(persistentVolumes, named('v')),
    'PersistentVolume "v" is invalid: [spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: Unsupported value: null: supported values: "storage", spec: Required value: must specify a volume type]',
  );
  const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } };
  const created = await harness.create(persistentVolumes, named('v', { spec }));
  assert.deepEqual(created.metadata.finalizers, ['kubernetes.io/pv-protection']);
  assert.deepEqual(created.spec, {
    ...spec,
    hostPath: { path: '/a', type: '' },
    persistentVolumeReclaimPolicy: 'Retain',
    volumeMode: 'Filesystem',
  });
  assert.equal(created.status?.['phase'], 'Pending');
  const { message } = await refusedWith(
    harness.update(persistentVolumes, {
      ...created,
      spec: { ...created.spec, hostPath: { path: '/b', type: '' } },
    }),
    422,
  );
  assert.match(message, /spec\.persistentvolumesource is immutable after creation\nchanged: hostPath\.path$/);
});

test('requires access modes and requested storage for a claim, sets its default storage class, and rejects a change of its access modes', async () => {
  using harness = new KindsRig();
  assert.equal(
    await harness.refusal(persistentVolumeClaims, named('c')),
    'PersistentVolumeClaim "c" is invalid: [spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: Required value]',
  );
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  await harness.create(storageClasses, {
    metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'example.com/x',
  });
  const created = await harness.create(persistentVolumeClaims, named('c', { spec }));
  assert.equal(created.spec?.['storageClassName'], 'fast');
  assert.deepEqual(created.metadata.finalizers, ['kubernetes.io/pvc-protection']);
  const { message } = await refusedWith(
    harness.update(persistentVolumeClaims, {
      ...created,
      spec: { ...created.spec, accessModes: ['ReadOnlyMany'] },
    }),
    422,
  );
  assert.match(
    message,
    /spec: Forbidden: spec is immutable after creation except .*\nchanged: spec\.accessModes\[0\]$/,
  );
  await harness.update(persistentVolumeClaims, { ...created, spec: { ...created.spec, volumeName: 'v' } });
});

test('rejects changes of immutable fields of storage classes and CSI drivers', async () => {
  using harness = new KindsRig();
  const fast = await harness.create(storageClasses, named('fast', { provisioner: 'example.com/x' }));
  assert.equal(fast['reclaimPolicy'], 'Delete');
  assert.equal(fast['volumeBindingMode'], 'Immediate');
  await refusedWith(
    harness.update(storageClasses, { ...fast, provisioner: 'example.com/y' }),
    422,
    'StorageClass.storage.k8s.io "fast" is invalid: provisioner: Invalid value: "example.com/y": field is immutable',
  );
  const driver = await harness.create(csiDrivers, named('d.example.com'));
  assert.deepEqual(driver.spec?.['volumeLifecycleModes'], ['Persistent']);
  const changed = await harness.update(csiDrivers, {
    ...driver,
    spec: { ...driver.spec, podInfoOnMount: true },
  });
  assert.equal(changed.metadata.generation, 1);
  const node = await harness.create(
    csiNodes,
    named('n1', { spec: { drivers: [{ name: 'd', nodeID: 'x', topologyKeys: [] }] } }),
  );
  const { message } = await refusedWith(
    harness.update(csiNodes, { ...node, spec: { drivers: [{ name: 'd', nodeID: 'y', topologyKeys: [] }] } }),
    422,
  );
  assert.match(message, /spec\.drivers: Invalid value: .*: field is immutable$/);
  const runtime = await harness.create(runtimeClasses, named('kata', { handler: 'kata' }));
  await refusedWith(harness.update(runtimeClasses, { ...runtime, handler: 'other' }), 422);
  assert.match(
    await harness.refusal(runtimeClasses, named('x', { handler: 'A' })),
    /handler: Invalid value: "A"/,
  );
});
