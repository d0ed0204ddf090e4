import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ApiClient,
  type ApiObject,
  type ApiResource,
  apiResources,
  isApiCode,
} from '../../../src/api/index.ts';
import type { ErrorCode } from '../../../src/lib/index.ts';
import { ApiRig, podRef, pods } from '../../fakes/api-rig.ts';
import { bootstrapUser } from '../../fakes/api-users.ts';

const says = (code: ErrorCode) => (error: unknown) => isApiCode(error, code);
const denied = says('API_FORBIDDEN');
const { nodes, leases, secrets, configMaps, csiNodes, serviceAccounts } = apiResources;

async function refused(harness: ApiRig, call: Promise<unknown>, message?: RegExp): Promise<void> {
  await assert.rejects(harness.done(call), (error) => {
    assert.ok(denied(error), String(error));
    if (message !== undefined) assert.match(String(error), message);
    return true;
  });
}

function aNode(name: string, labels: Record<string, string> = {}, more: object = {}): ApiObject {
  return { metadata: { name, labels }, ...more } as ApiObject;
}

test('a node can register itself, but no other node', async () => {
  using harness = new ApiRig();
  const create = (object: ApiObject) => harness.node.create({ resource: nodes }, object, harness.signal);
  await refused(harness, create(aNode('n2')));
  await refused(
    harness,
    create(aNode('n1', { 'node-restriction.kubernetes.io/x': '1' })),
    /node-restriction/,
  );
  await refused(harness, create(aNode('n1', { 'example.k8s.io/x': '1' })));
  await refused(harness, create(aNode('n1', {}, { spec: { configSource: {} } })));
  const labels = { 'kubernetes.io/os': 'linux', 'x.node.kubernetes.io/y': '1', 'example.com/z': '1' };
  await harness.done(create(aNode('n1', labels, { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } })));
  await assert.rejects(harness.done(create(aNode('n1'))), says('API_CONFLICT'));
});

test('a node can read and patch only its own Node object', async () => {
  using harness = new ApiRig();
  const taints = [{ key: 'a', effect: 'NoSchedule' }];
  for (const name of ['n1', 'n2']) harness.api.put(nodes, { metadata: { name }, spec: { taints } });
  const own = { resource: nodes, name: 'n1', subresource: 'status' };
  const patch = (body: object, ref = own) =>
    harness.node.patch(ref, { kind: 'strategic', body }, harness.signal);
  await refused(harness, harness.node.get({ resource: nodes, name: 'n2' }, {}, harness.signal));
  await refused(harness, harness.node.list({ resource: nodes }, harness.signal));
  await harness.done(
    harness.node.list({ resource: nodes, fieldSelector: 'metadata.name=n1' }, harness.signal),
  );
  await refused(harness, patch({ status: {} }, { ...own, name: 'n2' }));
  await refused(
    harness,
    harness.node.patch({ resource: nodes, name: 'n1' }, { kind: 'merge', body: {} }, harness.signal),
  );
  await refused(harness, harness.node.delete({ resource: nodes, name: 'n1' }, {}, harness.signal));
  await refused(harness, patch({ metadata: { ownerReferences: [{ uid: 'x' }] } }), /ownerReferences/);
  await refused(
    harness,
    patch({ metadata: { labels: { 'kubernetes.io/role': 'x' } } }),
    /labels: kubernetes.io\/role/,
  );
  const body = {
    metadata: { labels: { 'kubernetes.io/arch': 'amd64' } },
    spec: { taints: [] },
    status: { phase: 'x' },
  };
  await harness.done(patch(body));
  assert.deepEqual(harness.api.object({ resource: nodes, name: 'n1' })?.spec, { taints });
});

test('a node can read the pods bound to it, singly or in a list', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  harness.pod('b', { spec: { nodeName: 'n2' } });
  await harness.done(harness.node.get(podRef('a'), {}, harness.signal));
  await refused(harness, harness.node.get(podRef('b'), {}, harness.signal), /no relationship found/);
  await assert.rejects(
    harness.done(harness.node.get(podRef('c'), {}, harness.signal)),
    says('API_NOT_FOUND'),
  );
  await refused(harness, harness.node.list({ resource: pods }, harness.signal));
  await harness.done(
    harness.node.list({ resource: pods, fieldSelector: 'spec.nodeName=n1' }, harness.signal),
  );
  const watched = harness.watch(harness.node, { resource: pods, fieldSelector: 'spec.nodeName=n2' });
  await harness.clock.advance(10);
  assert.ok(denied(watched.end));
});

test('a node can change only the status of a pod, and delete only its own pods', async () => {
  using harness = new ApiRig();
  harness.pod('a', { metadata: { labels: { x: '1' } }, status: { resourceClaimStatuses: [{ name: 'c' }] } });
  harness.pod('b', { spec: { nodeName: 'n2' } });
  const status = (name: string, body: object) =>
    harness.node.patch(podRef(name, 'status'), { kind: 'merge', body }, harness.signal);
  await harness.done(status('a', { status: { phase: 'Running' } }));
  await refused(harness, status('b', { status: { phase: 'Running' } }));
  await refused(harness, status('a', { metadata: { labels: { x: '2' } } }), /labels/);
  await refused(harness, status('a', { status: { resourceClaimStatuses: null } }), /resourceClaimStatuses/);
  await refused(harness, harness.node.patch(podRef('a'), { kind: 'merge', body: {} }, harness.signal));
  await refused(harness, harness.node.update(podRef('a'), { metadata: { name: 'a' } }, harness.signal));
  await refused(harness, harness.node.post(podRef('a', 'eviction'), {}, harness.signal));
  await refused(harness, harness.node.delete(podRef('b'), { gracePeriodSeconds: 0 }, harness.signal));
  await harness.done(harness.node.delete(podRef('a'), { gracePeriodSeconds: 0 }, harness.signal));
});

test('a node can create only mirror pods, owned by itself, that reference no API objects', async () => {
  using harness = new ApiRig();
  const owner = (more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Node',
    name: 'n1',
    uid: 'u1',
    controller: true,
    ...more,
  });
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'hash' } };
  const create = (meta: object, spec: object = {}) => {
    const object = { metadata: { name: 'web-n1', ...mirror, ownerReferences: [owner()], ...meta } };
    const whole = { ...object, spec: { nodeName: 'n1', containers: [], ...spec } } as ApiObject;
    return harness.node.create({ resource: pods, namespace: 'default' }, whole, harness.signal);
  };
  await assert.rejects(harness.done(create({})), says('API_NOT_FOUND'));
  harness.api.put(nodes, { metadata: { name: 'n1', uid: 'u1' } });
  await refused(harness, create({ annotations: {} }), /mirror/);
  await refused(harness, create({}, { nodeName: 'n2' }));
  await refused(harness, create({ ownerReferences: [] }));
  await refused(harness, create({ ownerReferences: [owner(), owner()] }));
  await refused(harness, create({ ownerReferences: [owner({ controller: undefined })] }));
  await refused(harness, create({ ownerReferences: [owner({ uid: 'old' })] }), /UID mismatch/);
  const referring = [
    { serviceAccountName: 'x' },
    { imagePullSecrets: [{ name: 'x' }] },
    { containers: [{ env: [{ name: 'a', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }] }] },
    { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
    { volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] },
    { volumes: [{ name: 'v', csi: { driver: 'd' } }] },
    { resourceClaims: [{ name: 'r' }] },
  ];
  for (const spec of referring) await refused(harness, create({}, spec), /reference/);
  const harmless = {
    volumes: [
      { name: 'v', projected: { sources: [{ downwardAPI: {} }] } },
      { name: 'w', emptyDir: {} },
    ],
  };
  await harness.done(create({}, harmless));
});

test('a node can use only its own lease and its own CSINode', async () => {
  using harness = new ApiRig();
  const lease = (namespace: string, name: string) =>
    harness.node.create({ resource: leases, namespace }, { metadata: { name } }, harness.signal);
  await refused(harness, lease('default', 'n1'));
  await refused(harness, lease('kube-node-lease', 'n2'));
  await harness.done(lease('kube-node-lease', 'n1'));
  await refused(
    harness,
    harness.node.get({ resource: leases, namespace: 'kube-node-lease', name: 'n2' }, {}, harness.signal),
  );
  await refused(
    harness,
    harness.node.create({ resource: csiNodes }, { metadata: { name: 'n2' } }, harness.signal),
  );
  await harness.done(
    harness.node.create({ resource: csiNodes }, { metadata: { name: 'n1' } }, harness.signal),
  );
  await harness.done(harness.node.delete({ resource: csiNodes, name: 'n1' }, {}, harness.signal));
});

test('a node can read the secrets and config maps of its own pods, one at a time', async () => {
  using harness = new ApiRig();
  harness.api.put(secrets, { metadata: { name: 's' } });
  harness.api.put(configMaps, { metadata: { name: 'c' } });
  const get = (resource: ApiResource, name: string) =>
    harness.node.get({ resource, namespace: 'default', name }, {}, harness.signal);
  await refused(harness, get(secrets, 's'), /no relationship/);
  harness.pod('other', { spec: { nodeName: 'n2', imagePullSecrets: [{ name: 's' }] } });
  await refused(harness, get(secrets, 's'));
  harness.pod('a', {
    spec: {
      imagePullSecrets: [{ name: 's' }],
      volumes: [
        { name: 'v', projected: { sources: [{ configMap: { name: 'c' } }, { secret: { name: 'p' } }] } },
      ],
    },
  });
  await harness.done(get(secrets, 's'));
  await harness.done(get(configMaps, 'c'));
  await assert.rejects(harness.done(get(secrets, 'p')), says('API_NOT_FOUND'));
  await refused(harness, harness.node.list({ resource: secrets, namespace: 'default' }, harness.signal));
  const one = { resource: secrets, namespace: 'default', fieldSelector: 'metadata.name=s' };
  await harness.done(harness.node.list(one, harness.signal));
  const watched = harness.watch(harness.node, one);
  await harness.clock.advance(10);
  assert.equal(watched.events.length, 2);
});

test('a node can read the claims of its pods and their volumes', async () => {
  using harness = new ApiRig();
  const { persistentVolumeClaims: claims, persistentVolumes: volumes, volumeAttachments } = apiResources;
  harness.api.put(claims, { metadata: { name: 'c' }, spec: { volumeName: 'pv' } });
  harness.api.put(claims, { metadata: { name: 'a-scratch' }, spec: { volumeName: 'pv2' } });
  for (const name of ['pv', 'pv2', 'pv3']) harness.api.put(volumes, { metadata: { name } });
  harness.api.put(volumeAttachments, { metadata: { name: 'va' }, spec: { nodeName: 'n2' } });
  harness.pod('a', {
    spec: {
      volumes: [
        { name: 'v', persistentVolumeClaim: { claimName: 'c' } },
        { name: 'scratch', ephemeral: {} },
      ],
    },
  });
  const get = (resource: ApiResource, name: string, namespace?: string) =>
    harness.node.get({ resource, name, namespace }, {}, harness.signal);
  for (const name of ['pv', 'pv2']) await harness.done(get(volumes, name));
  await refused(harness, get(volumes, 'pv3'));
  await harness.done(get(claims, 'a-scratch', 'default'));
  await refused(harness, get(volumeAttachments, 'va'));
  const ref = { resource: claims, namespace: 'default', name: 'c', subresource: 'status' };
  const patch = (body: object) => harness.node.patch(ref, { kind: 'merge', body }, harness.signal);
  await harness.done(patch({ status: { capacity: { storage: '2Gi' } } }));
  await refused(harness, patch({ status: { phase: 'Lost' } }));
  await refused(harness, patch({ metadata: { labels: { a: 'b' } } }));
});

test('a node gets tokens only for pods bound to it, with an audience that a volume of the pod requests', async () => {
  using harness = new ApiRig();
  harness.api.put(serviceAccounts, { metadata: { name: 'sa', uid: 'sa-uid' } });
  const volume = {
    name: 'v',
    projected: { sources: [{ serviceAccountToken: { audience: 'vault', path: 't' } }] },
  };
  const spec = { serviceAccountName: 'sa', volumes: [volume] };
  const { metadata } = harness.pod('a', { spec });
  const other = harness.pod('b', { spec: { ...spec, nodeName: 'n2' } });
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: metadata.uid };
  const ref = { resource: serviceAccounts, namespace: 'default', name: 'sa', subresource: 'token' };
  const ask = (asked: object, client: ApiClient = harness.node) =>
    client.post<ApiObject & { status: { token: string; expirationTimestamp: string } }>(
      ref,
      { spec: asked } as ApiObject,
      harness.signal,
    );
  await refused(harness, ask({ audiences: ['vault'] }), /not bound to a pod/);
  await refused(
    harness,
    ask({ audiences: ['vault'], boundObjectRef: { ...bound, uid: undefined } }),
    /without a uid/,
  );
  await assert.rejects(harness.done(ask({ boundObjectRef: { ...bound, uid: 'old' } })), says('API_CONFLICT'));
  await assert.rejects(harness.done(ask({ boundObjectRef: { ...bound, name: 'z' } })), says('API_NOT_FOUND'));
  await refused(
    harness,
    ask({ audiences: ['vault'], boundObjectRef: { ...bound, name: 'b', uid: other.metadata.uid } }),
  );
  await refused(harness, ask({ audiences: ['else'], boundObjectRef: bound }), /audience "else"/);
  await refused(harness, ask({ audiences: ['vault', 'else'], boundObjectRef: bound }));
  await assert.rejects(
    harness.done(ask({ audiences: ['vault'], expirationSeconds: 60, boundObjectRef: bound })),
    says('API_INVALID'),
  );
  const response = await harness.done(
    ask({ audiences: ['vault'], expirationSeconds: 600, boundObjectRef: bound }),
  );
  assert.equal(response.status.expirationTimestamp, '2026-01-01T00:10:00Z');
  const claims = JSON.parse(Buffer.from(response.status.token.split('.')[1] ?? '', 'base64url').toString());
  assert.deepEqual([claims.sub, claims.aud], ['system:serviceaccount:default:sa', ['vault']]);
  assert.deepEqual(claims['kubernetes.io'].pod, { name: 'a', uid: metadata.uid });
  const again = await harness.done(ask({}, harness.admin));
  assert.notEqual(again.status.token, response.status.token);
});

test("token and access reviews are answered by the test's functions and not stored", async () => {
  using harness = new ApiRig({
    reviewToken: ({ token }) => ({ authenticated: token === 'good', user: { username: 'u', groups: ['g'] } }),
    reviewAccess: ({ user }) => ({ allowed: user === 'u' }),
  });
  const review = async (resource: ApiResource, spec: object) => {
    const response = await harness.done(
      harness.node.create<ApiObject & { status: object }>(
        { resource },
        { spec } as ApiObject,
        harness.signal,
      ),
    );
    return response.status;
  };
  assert.deepEqual(await review(apiResources.tokenReviews, { token: 'good' }), {
    authenticated: true,
    user: { username: 'u', groups: ['g'] },
  });
  assert.deepEqual(await review(apiResources.subjectAccessReviews, { user: 'v' }), { allowed: false });
  assert.deepEqual(harness.api.objects(apiResources.tokenReviews), []);
  using strict = new ApiRig();
  const response = await strict.done(
    strict.node.create<ApiObject & { status: object }>(
      { resource: apiResources.tokenReviews },
      {},
      strict.signal,
    ),
  );
  assert.deepEqual(response.status, { authenticated: false });
});

test('certificate requests are signed or denied, and a bootstrap user cannot request anything else', async () => {
  using harness = new ApiRig({
    signer: ({ spec }) => (spec?.['request'] === 'bad' ? { denied: 'no' } : { certificate: 'PEM' }),
  });
  const resource = apiResources.certificateSigningRequests;
  const newcomer = harness.api.client(bootstrapUser('abc'));
  const ask = (name: string, request: string) =>
    newcomer.create({ resource }, { metadata: { name }, spec: { request } } as ApiObject, harness.signal);
  const watched = harness.watch(newcomer, { resource });
  await harness.clock.advance(10);
  await harness.done(ask('a', 'good'));
  await harness.done(ask('b', 'bad'));
  await harness.clock.advance(10);
  const [a, b] = harness.api.objects(resource).map(({ status }) => status);
  assert.equal(a?.['certificate'], Buffer.from('PEM').toString('base64'));
  const conditions = (b?.['conditions'] ?? []) as readonly { readonly type: string }[];
  assert.equal(conditions[0]?.type, 'Denied');
  const types = watched.events.map(({ type }) => type);
  assert.equal(types.filter((type) => type === 'MODIFIED').length, 2);
  await refused(harness, newcomer.get(podRef('a'), {}, harness.signal));
});

test('an approval changes only the conditions of a certificate signing request', async () => {
  using harness = new ApiRig();
  const resource = apiResources.certificateSigningRequests;
  const csr = harness.api.put(resource, { metadata: { name: 'a' }, spec: { request: 'r' } }) as ApiObject &
    object;
  const conditions = [{ type: 'Approved', status: 'True' }];
  const approved = { ...csr, spec: { request: 'x' }, status: { conditions, certificate: 'c' } } as ApiObject;
  await harness.done(
    harness.admin.update({ resource, name: 'a', subresource: 'approval' }, approved, harness.signal),
  );
  const after = harness.api.object({ resource, name: 'a' });
  assert.deepEqual(after?.status, { conditions });
  assert.equal(after?.spec?.['request'], 'r');
});

test("requests outside of a kubelet's permissions are rejected", async () => {
  using harness = new ApiRig();
  harness.api.put(apiResources.services, { metadata: { name: 's' } });
  await harness.done(harness.node.list({ resource: apiResources.services }, harness.signal));
  const ref = { resource: apiResources.services, namespace: 'default', name: 's' };
  await refused(harness, harness.node.delete(ref, {}, harness.signal));
  const stranger: ApiResource = {
    group: 'apps',
    version: 'v1',
    plural: 'deployments',
    kind: 'Deployment',
    scope: 'namespace',
  };
  await refused(harness, harness.node.list({ resource: stranger }, harness.signal));
});
