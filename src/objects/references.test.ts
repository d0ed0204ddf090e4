import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import type { Container, Volume } from '../kinds/index.ts';
import { podUid } from '../pods/index.ts';
import { configMapNamesOf, PodReferences, secretNamesOf } from './references.ts';

const container = (prefix: string): Container => ({
  name: prefix,
  env: [
    { name: 'A', value: 'plain' },
    { name: 'B', valueFrom: { secretKeyRef: { name: `${prefix}-key-secret`, key: 'k' } } },
    { name: 'C', valueFrom: { configMapKeyRef: { name: `${prefix}-key-map`, key: 'k' } } },
    { name: 'D', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ],
  envFrom: [{ secretRef: { name: `${prefix}-secret` } }, { configMapRef: { name: `${prefix}-map` } }, {}],
});

test('finds the objects to which environment variables of every kind of container refer', () => {
  const pod = aPod({
    spec: {
      initContainers: [container('init')],
      containers: [container('main')],
      ephemeralContainers: [container('debug')],
    },
  });
  const named = (kind: string) =>
    ['init', 'main', 'debug'].flatMap((prefix) => [`${prefix}-${kind}`, `${prefix}-key-${kind}`]);
  assert.deepEqual([...secretNamesOf(pod)], named('secret'));
  assert.deepEqual([...configMapNamesOf(pod)], named('map'));
});

const secretVolumes: readonly [string, Partial<Volume>][] = [
  ['a secret', { secret: { secretName: 's' } }],
  [
    'a projected secret',
    { projected: { sources: [{ configMap: { name: 'x' } }, { secret: { name: 's' } }] } },
  ],
  ['a secret for CSI NodePublish', { csi: { driver: 'd', nodePublishSecretRef: { name: 's' } } }],
  ['azureFile', { azureFile: { secretName: 's', shareName: 'f' } }],
  ['cephfs', { cephfs: { monitors: [], secretRef: { name: 's' } } }],
  ['cinder', { cinder: { volumeID: 'v', secretRef: { name: 's' } } }],
  ['flexVolume', { flexVolume: { driver: 'd', secretRef: { name: 's' } } }],
  ['iscsi', { iscsi: { targetPortal: 't', iqn: 'i', lun: 0, secretRef: { name: 's' } } }],
  ['rbd', { rbd: { monitors: [], image: 'i', secretRef: { name: 's' } } }],
  ['scaleIO', { scaleIO: { gateway: 'g', system: 'y', secretRef: { name: 's' } } }],
  ['storageos', { storageos: { secretRef: { name: 's' } } }],
];
for (const [what, source] of secretVolumes) {
  test(`finds the secret of a volume: ${what}`, () => {
    assert.deepEqual([...secretNamesOf(aPod({ spec: { volumes: [{ name: 'v', ...source }] } }))], ['s']);
  });
}

test('finds config maps of plain and projected volumes', () => {
  const volumes = [
    { name: 'a', configMap: { name: 'one' } },
    { name: 'b', projected: { sources: [{ configMap: { name: 'two' } }, { secret: { name: 'x' } }] } },
    { name: 'c', emptyDir: {} },
  ];
  assert.deepEqual([...configMapNamesOf(aPod({ spec: { volumes } }))], ['one', 'two']);
});

test('finds image pull secrets once each, and ignores references without a name', () => {
  const imagePullSecrets = [{ name: 'pull' }, { name: '' }, {}, { name: 'pull' }];
  assert.deepEqual([...secretNamesOf(aPod({ spec: { imagePullSecrets } }))], ['pull']);
  assert.equal(configMapNamesOf(aPod()).size, 0);
});

function createHarness() {
  const reported: string[] = [];
  const references = new PodReferences<never>(
    {
      add: ({ namespace, name }, pod) => reported.push(`+${namespace}/${name} ${pod}`),
      remove: ({ namespace, name }, pod) => reported.push(`-${namespace}/${name} ${pod}`),
      get: () => Promise.reject(new Error('The test must not read this object')),
    },
    secretNamesOf,
  );
  const pod = (uid: string, ...names: readonly string[]) =>
    aPod({ metadata: { uid: podUid(uid) }, spec: { imagePullSecrets: names.map((name) => ({ name })) } });
  return { told: reported, references, pod };
}

test('reports to the store only what has changed since the previous registration of a pod', () => {
  const { told, references, pod } = createHarness();
  references.register(pod('u', 'a', 'b'));
  references.register(pod('u', 'a', 'b'));
  references.register(pod('u', 'b', 'c'));
  assert.deepEqual(told, ['+default/a u', '+default/b u', '+default/c u', '-default/a u']);
});

test('reports each pod to the store, even if pods refer to the same object', () => {
  const { told, references, pod } = createHarness();
  references.register(pod('u', 'a'));
  references.register(pod('v', 'a'));
  references.unregister(podUid('u'));
  assert.deepEqual(told, ['+default/a u', '+default/a v', '-default/a u']);
});

test('unregisters the last references of a pod that is removed, and reports that to the store only once', () => {
  const { told, references, pod } = createHarness();
  references.register(pod('u', 'a'));
  references.register(pod('u', 'b'));
  told.length = 0;
  references.unregister(podUid('u'));
  references.unregister(podUid('u'));
  references.unregister(podUid('never'));
  assert.deepEqual(told, ['-default/b u']);
});
