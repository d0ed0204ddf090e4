import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeUser } from '../../../test/fakes/api-users.ts';
import { KindsRig, named, requestFor } from '../../../test/fakes/kinds-rig.ts';
import { ScriptedDurability } from '../../../test/fakes/scripted-durability.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import { type StoredObject, serverResources } from '../api/index.ts';

const { configMaps, serviceAccounts, services, pods, nodes, events } = apiResources;
const { persistentVolumes, persistentVolumeClaims, certificateSigningRequests } = apiResources;
const { namespaces, priorityClasses, endpoints, storageClasses } = serverResources;

function conditionOf(object: StoredObject | undefined, expected: string): JsonObject | undefined {
  const conditions = (object?.status?.['conditions'] ?? []) as readonly JsonObject[];
  return conditions.find(({ type }) => type === expected);
}

test('creates the bootstrap objects at start and again after they are deleted', async () => {
  using harness = new KindsRig();
  harness.run();
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) {
    assert.ok(harness.get(namespaces, name));
    assert.ok(harness.get(serviceAccounts, 'default', name));
    assert.deepEqual(harness.get(configMaps, 'kube-root-ca.crt', name)?.['data'], { 'ca.crt': 'ROOT' });
  }
  assert.equal(harness.get(priorityClasses, 'system-node-critical')?.['value'], 2_000_001_000);
  assert.equal(harness.get(services, 'kubernetes')?.spec?.['clusterIP'], 'None');
  assert.equal(harness.get(endpoints, 'kubernetes'), undefined);
  await harness.rig.ask('delete', serviceAccounts, { name: 'default' });
  await harness.rig.ask('delete', configMaps, { name: 'kube-root-ca.crt' });
  await harness.rig.ask('delete', priorityClasses, { name: 'system-node-critical' });
  await harness.rig.ask('delete', services, { name: 'kubernetes' });
  await harness.settle();
  assert.ok(harness.get(serviceAccounts, 'default'));
  assert.ok(harness.get(configMaps, 'kube-root-ca.crt'));
  assert.ok(harness.get(priorityClasses, 'system-node-critical'));
  assert.ok(harness.get(services, 'kubernetes'));
});

test('creates the default service account and the CA bundle in a new namespace and keeps them current', async () => {
  using harness = new KindsRig();
  let root = 'ONE';
  harness.run({ rootCertificates: () => root });
  await harness.create(namespaces, named('a'));
  await harness.settle();
  assert.ok(harness.get(serviceAccounts, 'default', 'a'));
  const bundle = harness.get(configMaps, 'kube-root-ca.crt', 'a');
  assert.deepEqual(bundle?.['data'], { 'ca.crt': 'ONE' });
  assert.ok(bundle);
  await harness.update(configMaps, { ...bundle, data: {} });
  await harness.settle();
  assert.deepEqual(harness.get(configMaps, 'kube-root-ca.crt', 'a')?.['data'], { 'ca.crt': 'ONE' });
  root = 'TWO';
  await harness.settle(600_000);
  assert.deepEqual(harness.get(configMaps, 'kube-root-ca.crt', 'a')?.['data'], { 'ca.crt': 'TWO' });
});

test('points the kubernetes Service to the address of the server', async () => {
  using harness = new KindsRig();
  harness.run({ serverEndpoint: { kind: 'at', address: '192.168.1.5', port: 7443 } });
  const service = harness.get(services, 'kubernetes');
  assert.equal(service?.spec?.['clusterIP'], '192.168.1.5');
  assert.deepEqual(service?.spec?.['ports'], [
    { name: 'https', protocol: 'TCP', port: 7443, targetPort: 7443 },
  ]);
  assert.deepEqual(harness.get(endpoints, 'kubernetes')?.['subsets'], [
    { addresses: [{ ip: '192.168.1.5' }], ports: [{ name: 'https', port: 7443, protocol: 'TCP' }] },
  ]);
  harness.run({ serverEndpoint: { kind: 'at', address: '192.168.1.6', port: 7443 } });
  assert.equal(harness.get(services, 'kubernetes')?.spec?.['clusterIP'], '192.168.1.6');
});

async function withNamespace(harness: KindsRig, name: string): Promise<void> {
  await harness.create(namespaces, named(name));
  await harness.settle();
}

test('deletes a namespace together with its contents', async () => {
  using harness = new KindsRig();
  harness.run();
  await withNamespace(harness, 'a');
  await harness.create(configMaps, named('c'), { namespace: 'a' });
  await harness.rig.object('delete', namespaces, { name: 'a' });
  await harness.settle();
  assert.equal(harness.get(namespaces, 'a'), undefined);
  assert.deepEqual(harness.rig.store.all(configMaps, 'a'), []);
  assert.deepEqual(harness.rig.store.all(serviceAccounts, 'a'), []);
});

test('deletes the contents of a namespace no faster than the store accepts writes', async () => {
  const durability = new ScriptedDurability();
  using harness = new KindsRig(durability);
  const commit = async () => {
    durability.commit(harness.rig.store.version);
    await harness.settle();
  };
  harness.run();
  await commit();
  const created = harness.create(namespaces, named('a'));
  await harness.settle();
  for (let index = 0; index < 50; index++)
    void harness.create(configMaps, named(`c${index}`), { namespace: 'a' });
  await commit();
  await created;
  durability.room = 10;
  const deleted = harness.rig.object('delete', namespaces, { name: 'a' });
  const waited: number[] = [];
  for (let round = 0; round < 20 && harness.get(namespaces, 'a') !== undefined; round++) {
    await harness.settle();
    waited.push(durability.waiting);
    await commit();
  }
  await deleted;
  assert.equal(harness.get(namespaces, 'a'), undefined);
  // More than 10 writes may wait, because the server also updates the namespace conditions.
  assert.ok(Math.max(...waited) <= 12, String(waited));
  assert.ok(waited.length > 4, String(waited));
});

test('waits for the pods of a namespace to terminate before deleting the other objects', async () => {
  using harness = new KindsRig();
  harness.run();
  await withNamespace(harness, 'a');
  await harness.create(configMaps, named('c'), { namespace: 'a' });
  const pod = await harness.create(
    pods,
    { metadata: { name: 'p' }, spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] } },
    { namespace: 'a' },
  );
  await harness.rig.object('delete', namespaces, { name: 'a' });
  await harness.settle();
  assert.equal(harness.get(pods, 'p', 'a')?.metadata.deletionGracePeriodSeconds, 30);
  assert.ok(harness.get(configMaps, 'c', 'a'));
  const remaining = conditionOf(harness.get(namespaces, 'a'), 'NamespaceContentRemaining');
  assert.equal(remaining?.['status'], 'True');
  assert.match(String(remaining?.['message']), /pods\. has 1 resource instances \(p\)/);
  await harness.rig.ask('delete', pods, {
    namespace: 'a',
    name: 'p',
    body: { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } },
  });
  await harness.settle();
  assert.equal(harness.get(namespaces, 'a'), undefined);
});

test('reports remaining finalizers in the namespace conditions and removes them on a forced deletion', async () => {
  using harness = new KindsRig();
  harness.run();
  await withNamespace(harness, 'a');
  await harness.create(
    configMaps,
    { metadata: { name: 'stuck', finalizers: ['example.com/hold'] } },
    { namespace: 'a' },
  );
  await harness.rig.object('delete', namespaces, { name: 'a' });
  await harness.settle();
  const held = conditionOf(harness.get(namespaces, 'a'), 'NamespaceFinalizersRemaining');
  assert.equal(
    held?.['message'],
    'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances (configmaps/stuck)',
  );
  const forced = { name: 'a', body: { gracePeriodSeconds: 0 } };
  await harness.rig.object('delete', namespaces, {
    ...forced,
    body: { gracePeriodSeconds: 0, dryRun: ['All'] },
  });
  await harness.settle(60_000);
  assert.ok(harness.get(configMaps, 'stuck', 'a'));
  await harness.rig.object('delete', namespaces, forced);
  assert.match(
    harness.warnings.at(-1) ?? '',
    /finalizers of all remaining objects in namespace a are removed/,
  );
  await harness.settle();
  assert.equal(harness.get(namespaces, 'a'), undefined);
});

const size = (storage: string) => ({ resources: { requests: { storage } } });

function volume(name: string, storage: string, more: JsonObject = {}): JsonObject {
  const spec = {
    capacity: { storage },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: `/${name}` },
    ...more,
  };
  return named(name, { spec });
}

test('binds a claim to the smallest matching volume and keeps the binding', async () => {
  using harness = new KindsRig();
  harness.run();
  await harness.create(persistentVolumes, volume('big', '10Gi'));
  await harness.create(persistentVolumes, volume('small', '2Gi'));
  await harness.create(persistentVolumes, volume('tiny', '1Mi'));
  await harness.create(
    persistentVolumeClaims,
    named('c', { spec: { accessModes: ['ReadWriteOnce'], ...size('1Gi') } }),
  );
  await harness.settle();
  const claim = harness.get(persistentVolumeClaims, 'c');
  assert.equal(claim?.spec?.['volumeName'], 'small');
  assert.deepEqual(claim?.status, {
    phase: 'Bound',
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: '2Gi' },
  });
  assert.equal(harness.get(persistentVolumes, 'small')?.status?.['phase'], 'Bound');
  assert.equal(harness.get(persistentVolumes, 'big')?.status?.['phase'], 'Available');
  await harness.rig.ask('delete', persistentVolumes, { name: 'small' });
  await harness.settle();
  assert.ok(harness.get(persistentVolumes, 'small'));
  await harness.rig.ask('delete', persistentVolumeClaims, { name: 'c' });
  await harness.settle();
  assert.equal(harness.get(persistentVolumeClaims, 'c'), undefined);
  assert.equal(harness.get(persistentVolumes, 'small'), undefined);
});

test('binds a claim with a volumeName only to that volume and rebinds no released volume', async () => {
  using harness = new KindsRig();
  harness.run();
  await harness.create(persistentVolumes, volume('v', '1Gi'));
  const claim = (name: string) =>
    harness.create(
      persistentVolumeClaims,
      named(name, { spec: { accessModes: ['ReadWriteOnce'], volumeName: 'v', ...size('1Gi') } }),
    );
  await claim('first');
  await harness.settle();
  await claim('second');
  await harness.settle();
  assert.equal(harness.get(persistentVolumeClaims, 'first')?.status?.['phase'], 'Bound');
  assert.equal(harness.get(persistentVolumeClaims, 'second')?.status?.['phase'], 'Pending');
  await harness.rig.ask('delete', persistentVolumeClaims, { name: 'first' });
  await harness.settle();
  assert.equal(harness.get(persistentVolumes, 'v')?.status?.['phase'], 'Released');
  assert.equal(harness.get(persistentVolumeClaims, 'second')?.status?.['phase'], 'Pending');
});

test('creates the claims of ephemeral volumes and deletes them with their pod', async () => {
  using harness = new KindsRig();
  harness.run();
  await harness.create(persistentVolumes, volume('v', '1Gi'));
  const template = {
    metadata: { labels: { app: 'x' } },
    spec: { accessModes: ['ReadWriteOnce'], ...size('1Gi') },
  };
  const spec = { volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: template } }] };
  const pod = await harness.rig.pod('p', { spec });
  await harness.settle();
  const claim = harness.get(persistentVolumeClaims, 'p-scratch');
  assert.equal(claim?.status?.['phase'], 'Bound');
  assert.deepEqual(claim?.metadata.labels, { app: 'x' });
  const { uid } = pod.metadata;
  assert.deepEqual(claim?.metadata.ownerReferences, [
    { apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true, blockOwnerDeletion: true },
  ]);
  const end = (of: string | undefined) =>
    harness.rig.ask('delete', pods, {
      name: 'p',
      body: { gracePeriodSeconds: 0, preconditions: { uid: of } },
    });
  await end(uid);
  // The next pod of the same name gets a new claim, even if it is created immediately.
  const next = await harness.rig.pod('p', { spec });
  await harness.settle();
  const [owner] = harness.get(persistentVolumeClaims, 'p-scratch')?.metadata.ownerReferences ?? [];
  assert.equal(owner?.['uid'], next.metadata.uid);
  await end(next.metadata.uid);
  await harness.settle();
  assert.equal(harness.get(persistentVolumeClaims, 'p-scratch'), undefined);
  assert.equal(harness.get(persistentVolumes, 'v')?.status?.['phase'], 'Released');
});

test('protects a claim that a pod uses and delays binding for WaitForFirstConsumer', async () => {
  using harness = new KindsRig();
  harness.run();
  await harness.create(
    storageClasses,
    named('late', { provisioner: 'x', volumeBindingMode: 'WaitForFirstConsumer' }),
  );
  await harness.create(persistentVolumes, volume('v', '1Gi', { storageClassName: 'late' }));
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'late', ...size('1Gi') };
  await harness.create(persistentVolumeClaims, named('c', { spec }));
  await harness.settle();
  assert.equal(harness.get(persistentVolumeClaims, 'c')?.status?.['phase'], 'Pending');
  const pod = await harness.rig.pod('p', {
    spec: { volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'c' } }] },
  });
  await harness.settle();
  assert.equal(harness.get(persistentVolumeClaims, 'c')?.status?.['phase'], 'Bound');
  await harness.rig.ask('delete', persistentVolumeClaims, { name: 'c' });
  await harness.settle();
  assert.ok(harness.get(persistentVolumeClaims, 'c'));
  await harness.rig.ask('delete', pods, {
    name: 'p',
    body: { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } },
  });
  await harness.settle();
  assert.equal(harness.get(persistentVolumeClaims, 'c'), undefined);
});

const kubelet = {
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  usages: ['digital signature', 'client auth'],
};

function nodeRequest(node: string): string {
  return requestFor({ commonName: `system:node:${node}`, organizations: ['system:nodes'] });
}

test('approves and signs the client certificate of a node automatically', async () => {
  using harness = new KindsRig();
  harness.run();
  const spec = { ...kubelet, request: nodeRequest('n1'), expirationSeconds: 700 };
  await harness.create(certificateSigningRequests, named('c', { spec }), { user: nodeUser('n1') });
  await harness.settle();
  const created = harness.get(certificateSigningRequests, 'c');
  assert.equal(conditionOf(created, 'Approved')?.['reason'], 'AutoApproved');
  const text = Buffer.from(String(created?.status?.['certificate']), 'base64').toString();
  assert.match(text, /BEGIN CERTIFICATE/);
  const [order] = harness.orders;
  assert.equal((order?.notAfter ?? 0) - (order?.notBefore ?? 0), 700_000 + 300_000);
  await harness.settle(3_700_000);
  assert.equal(harness.get(certificateSigningRequests, 'c'), undefined);
});

test('limits the lifetime of a certificate to the configured maximum', async () => {
  using harness = new KindsRig();
  harness.run({ maxCertificateLifetimeMs: 120_000 });
  for (const [name, more] of Object.entries({ none: {}, long: { expirationSeconds: 86_400 } })) {
    const spec = { ...kubelet, request: nodeRequest('n1'), ...more };
    await harness.create(certificateSigningRequests, named(name, { spec }), { user: nodeUser('n1') });
  }
  await harness.settle();
  const lives = harness.orders.map(({ notAfter, notBefore }) => notAfter - notBefore);
  assert.deepEqual(lives, [420_000, 420_000]);
});

test('leaves certificate requests of other signers pending for a day', async () => {
  using harness = new KindsRig();
  harness.run();
  const spec = { ...kubelet, request: nodeRequest('n1') };
  await harness.create(certificateSigningRequests, named('c', { spec }));
  await harness.settle(23 * 3_600_000);
  assert.deepEqual(harness.get(certificateSigningRequests, 'c')?.status, {});
  await harness.settle(2 * 3_600_000);
  assert.equal(harness.get(certificateSigningRequests, 'c'), undefined);
});

test('fails an approved request that the signer rejects, with the reason', async () => {
  using harness = new KindsRig();
  harness.run();
  const spec = {
    ...kubelet,
    request: requestFor({ commonName: 'somebody', organizations: ['system:nodes'] }),
  };
  const created = await harness.create(certificateSigningRequests, named('c', { spec }));
  const status = { conditions: [{ type: 'Approved', status: 'True' }] };
  await harness.update(certificateSigningRequests, { ...created, status }, { subresource: 'approval' });
  await harness.settle();
  const failed = conditionOf(harness.get(certificateSigningRequests, 'c'), 'Failed');
  assert.equal(failed?.['reason'], 'SignerValidationFailure');
  assert.equal(failed?.['message'], 'subject common name does not begin with system:node:');
  assert.deepEqual(harness.orders, []);
});

test('approves a serving certificate only for the addresses of the node', async () => {
  using harness = new KindsRig();
  harness.run();
  const addresses = [{ type: 'InternalIP', address: '10.0.0.5' }];
  await harness.create(nodes, named('n1', { status: { addresses } }));
  const ask = (name: string, ip: string) =>
    harness.create(
      certificateSigningRequests,
      named(name, {
        spec: {
          signerName: 'kubernetes.io/kubelet-serving',
          usages: ['digital signature', 'server auth'],
          request: requestFor({ commonName: 'system:node:n1', organizations: ['system:nodes'], ips: [ip] }),
        },
      }),
      { user: nodeUser('n1') },
    );
  await ask('own', '10.0.0.5');
  await ask('other', '10.0.0.6');
  await harness.settle();
  assert.ok(conditionOf(harness.get(certificateSigningRequests, 'own'), 'Approved'));
  assert.equal(conditionOf(harness.get(certificateSigningRequests, 'other'), 'Approved'), undefined);
});

test('deletes expired events and those above the maximum number, events of existing pods last', async () => {
  using harness = new KindsRig();
  harness.run({ eventTtlMs: 3_600_000, maxEvents: 2 });
  await harness.rig.pod('live');
  const about = (name: string, pod: string) =>
    harness.create(events, named(name, { involvedObject: { kind: 'Pod', name: pod, namespace: 'default' } }));
  await about('live-1', 'live');
  await harness.settle(1_000);
  await about('gone-1', 'gone');
  await about('gone-2', 'gone');
  await harness.settle(31_000);
  assert.deepEqual(
    harness.rig.store.all(events).map(({ metadata }) => metadata.name),
    ['gone-2', 'live-1'],
  );
  await harness.settle(3_700_000);
  assert.deepEqual(harness.rig.store.all(events), []);
});
