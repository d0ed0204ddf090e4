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

async function refused(rig: ApiRig, call: Promise<unknown>, message?: RegExp): Promise<void> {
  await assert.rejects(rig.done(call), (error) => {
    assert.ok(denied(error), String(error));
    if (message !== undefined) assert.match(String(error), message);
    return true;
  });
}

function aNode(name: string, labels: Record<string, string> = {}, more: object = {}): ApiObject {
  return { metadata: { name, labels }, ...more } as ApiObject;
}

test('a node registers itself, and no other node', async () => {
  using rig = new ApiRig();
  const create = (object: ApiObject) => rig.node.create({ resource: nodes }, object, rig.signal);
  await refused(rig, create(aNode('n2')));
  await refused(rig, create(aNode('n1', { 'node-restriction.kubernetes.io/x': '1' })), /node-restriction/);
  await refused(rig, create(aNode('n1', { 'example.k8s.io/x': '1' })));
  await refused(rig, create(aNode('n1', {}, { spec: { configSource: {} } })));
  const labels = { 'kubernetes.io/os': 'linux', 'x.node.kubernetes.io/y': '1', 'example.com/z': '1' };
  await rig.done(create(aNode('n1', labels, { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } })));
  await assert.rejects(rig.done(create(aNode('n1'))), says('API_CONFLICT'));
});

test('a node reads and patches only its own object', async () => {
  using rig = new ApiRig();
  const taints = [{ key: 'a', effect: 'NoSchedule' }];
  for (const name of ['n1', 'n2']) rig.api.put(nodes, { metadata: { name }, spec: { taints } });
  const own = { resource: nodes, name: 'n1', subresource: 'status' };
  const patch = (body: object, ref = own) => rig.node.patch(ref, { kind: 'strategic', body }, rig.signal);
  await refused(rig, rig.node.get({ resource: nodes, name: 'n2' }, {}, rig.signal));
  await refused(rig, rig.node.list({ resource: nodes }, rig.signal));
  await rig.done(rig.node.list({ resource: nodes, fieldSelector: 'metadata.name=n1' }, rig.signal));
  await refused(rig, patch({ status: {} }, { ...own, name: 'n2' }));
  await refused(
    rig,
    rig.node.patch({ resource: nodes, name: 'n1' }, { kind: 'merge', body: {} }, rig.signal),
  );
  await refused(rig, rig.node.delete({ resource: nodes, name: 'n1' }, {}, rig.signal));
  await refused(rig, patch({ metadata: { ownerReferences: [{ uid: 'x' }] } }), /ownerReferences/);
  await refused(
    rig,
    patch({ metadata: { labels: { 'kubernetes.io/role': 'x' } } }),
    /labels: kubernetes.io\/role/,
  );
  const body = {
    metadata: { labels: { 'kubernetes.io/arch': 'amd64' } },
    spec: { taints: [] },
    status: { phase: 'x' },
  };
  await rig.done(patch(body));
  assert.deepEqual(rig.api.object({ resource: nodes, name: 'n1' })?.spec, { taints });
});

test('a node reads the pods bound to it, singly or in a list', async () => {
  using rig = new ApiRig();
  rig.pod('a');
  rig.pod('b', { spec: { nodeName: 'n2' } });
  await rig.done(rig.node.get(podRef('a'), {}, rig.signal));
  await refused(rig, rig.node.get(podRef('b'), {}, rig.signal), /no relationship found/);
  await assert.rejects(rig.done(rig.node.get(podRef('c'), {}, rig.signal)), says('API_NOT_FOUND'));
  await refused(rig, rig.node.list({ resource: pods }, rig.signal));
  await rig.done(rig.node.list({ resource: pods, fieldSelector: 'spec.nodeName=n1' }, rig.signal));
  const watched = rig.watch(rig.node, { resource: pods, fieldSelector: 'spec.nodeName=n2' });
  await rig.clock.advance(10);
  assert.ok(denied(watched.end));
});

test('a node changes only the status of a pod, and deletes only its own pods', async () => {
  using rig = new ApiRig();
  rig.pod('a', { metadata: { labels: { x: '1' } }, status: { resourceClaimStatuses: [{ name: 'c' }] } });
  rig.pod('b', { spec: { nodeName: 'n2' } });
  const status = (name: string, body: object) =>
    rig.node.patch(podRef(name, 'status'), { kind: 'merge', body }, rig.signal);
  await rig.done(status('a', { status: { phase: 'Running' } }));
  await refused(rig, status('b', { status: { phase: 'Running' } }));
  await refused(rig, status('a', { metadata: { labels: { x: '2' } } }), /labels/);
  await refused(rig, status('a', { status: { resourceClaimStatuses: null } }), /resourceClaimStatuses/);
  await refused(rig, rig.node.patch(podRef('a'), { kind: 'merge', body: {} }, rig.signal));
  await refused(rig, rig.node.update(podRef('a'), { metadata: { name: 'a' } }, rig.signal));
  await refused(rig, rig.node.post(podRef('a', 'eviction'), {}, rig.signal));
  await refused(rig, rig.node.delete(podRef('b'), { gracePeriodSeconds: 0 }, rig.signal));
  await rig.done(rig.node.delete(podRef('a'), { gracePeriodSeconds: 0 }, rig.signal));
});

test('a node creates only mirror pods, owned by itself, that reference no API objects', async () => {
  using rig = new ApiRig();
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
    return rig.node.create({ resource: pods, namespace: 'default' }, whole, rig.signal);
  };
  await assert.rejects(rig.done(create({})), says('API_NOT_FOUND'));
  rig.api.put(nodes, { metadata: { name: 'n1', uid: 'u1' } });
  await refused(rig, create({ annotations: {} }), /mirror/);
  await refused(rig, create({}, { nodeName: 'n2' }));
  await refused(rig, create({ ownerReferences: [] }));
  await refused(rig, create({ ownerReferences: [owner(), owner()] }));
  await refused(rig, create({ ownerReferences: [owner({ controller: undefined })] }));
  await refused(rig, create({ ownerReferences: [owner({ uid: 'old' })] }), /UID mismatch/);
  const referring = [
    { serviceAccountName: 'x' },
    { imagePullSecrets: [{ name: 'x' }] },
    { containers: [{ env: [{ name: 'a', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }] }] },
    { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
    { volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] },
    { volumes: [{ name: 'v', csi: { driver: 'd' } }] },
    { resourceClaims: [{ name: 'r' }] },
  ];
  for (const spec of referring) await refused(rig, create({}, spec), /reference/);
  const harmless = {
    volumes: [
      { name: 'v', projected: { sources: [{ downwardAPI: {} }] } },
      { name: 'w', emptyDir: {} },
    ],
  };
  await rig.done(create({}, harmless));
});

test('a node has one lease and one CSINode', async () => {
  using rig = new ApiRig();
  const lease = (namespace: string, name: string) =>
    rig.node.create({ resource: leases, namespace }, { metadata: { name } }, rig.signal);
  await refused(rig, lease('default', 'n1'));
  await refused(rig, lease('kube-node-lease', 'n2'));
  await rig.done(lease('kube-node-lease', 'n1'));
  await refused(
    rig,
    rig.node.get({ resource: leases, namespace: 'kube-node-lease', name: 'n2' }, {}, rig.signal),
  );
  await refused(rig, rig.node.create({ resource: csiNodes }, { metadata: { name: 'n2' } }, rig.signal));
  await rig.done(rig.node.create({ resource: csiNodes }, { metadata: { name: 'n1' } }, rig.signal));
  await rig.done(rig.node.delete({ resource: csiNodes, name: 'n1' }, {}, rig.signal));
});

test('a node reads the secrets and config maps of its own pods, one at a time', async () => {
  using rig = new ApiRig();
  rig.api.put(secrets, { metadata: { name: 's' } });
  rig.api.put(configMaps, { metadata: { name: 'c' } });
  const get = (resource: ApiResource, name: string) =>
    rig.node.get({ resource, namespace: 'default', name }, {}, rig.signal);
  await refused(rig, get(secrets, 's'), /no relationship/);
  rig.pod('other', { spec: { nodeName: 'n2', imagePullSecrets: [{ name: 's' }] } });
  await refused(rig, get(secrets, 's'));
  rig.pod('a', {
    spec: {
      imagePullSecrets: [{ name: 's' }],
      volumes: [
        { name: 'v', projected: { sources: [{ configMap: { name: 'c' } }, { secret: { name: 'p' } }] } },
      ],
    },
  });
  await rig.done(get(secrets, 's'));
  await rig.done(get(configMaps, 'c'));
  await assert.rejects(rig.done(get(secrets, 'p')), says('API_NOT_FOUND'));
  await refused(rig, rig.node.list({ resource: secrets, namespace: 'default' }, rig.signal));
  const one = { resource: secrets, namespace: 'default', fieldSelector: 'metadata.name=s' };
  await rig.done(rig.node.list(one, rig.signal));
  const watched = rig.watch(rig.node, one);
  await rig.clock.advance(10);
  assert.equal(watched.events.length, 2);
});

test('a node reads claims and their volumes', async () => {
  using rig = new ApiRig();
  const { persistentVolumeClaims: claims, persistentVolumes: volumes, volumeAttachments } = apiResources;
  rig.api.put(claims, { metadata: { name: 'c' }, spec: { volumeName: 'pv' } });
  rig.api.put(claims, { metadata: { name: 'a-scratch' }, spec: { volumeName: 'pv2' } });
  for (const name of ['pv', 'pv2', 'pv3']) rig.api.put(volumes, { metadata: { name } });
  rig.api.put(volumeAttachments, { metadata: { name: 'va' }, spec: { nodeName: 'n2' } });
  rig.pod('a', {
    spec: {
      volumes: [
        { name: 'v', persistentVolumeClaim: { claimName: 'c' } },
        { name: 'scratch', ephemeral: {} },
      ],
    },
  });
  const get = (resource: ApiResource, name: string, namespace?: string) =>
    rig.node.get({ resource, name, namespace }, {}, rig.signal);
  for (const name of ['pv', 'pv2']) await rig.done(get(volumes, name));
  await refused(rig, get(volumes, 'pv3'));
  await rig.done(get(claims, 'a-scratch', 'default'));
  await refused(rig, get(volumeAttachments, 'va'));
  const ref = { resource: claims, namespace: 'default', name: 'c', subresource: 'status' };
  const patch = (body: object) => rig.node.patch(ref, { kind: 'merge', body }, rig.signal);
  await rig.done(patch({ status: { capacity: { storage: '2Gi' } } }));
  await refused(rig, patch({ status: { phase: 'Lost' } }));
  await refused(rig, patch({ metadata: { labels: { a: 'b' } } }));
});

test('tokens are issued only for pods of the node, for an audience they request', async () => {
  using rig = new ApiRig();
  rig.api.put(serviceAccounts, { metadata: { name: 'sa', uid: 'sa-uid' } });
  const volume = {
    name: 'v',
    projected: { sources: [{ serviceAccountToken: { audience: 'vault', path: 't' } }] },
  };
  const spec = { serviceAccountName: 'sa', volumes: [volume] };
  const { metadata } = rig.pod('a', { spec });
  const other = rig.pod('b', { spec: { ...spec, nodeName: 'n2' } });
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: metadata.uid };
  const ref = { resource: serviceAccounts, namespace: 'default', name: 'sa', subresource: 'token' };
  const ask = (asked: object, client: ApiClient = rig.node) =>
    client.post<ApiObject & { status: { token: string; expirationTimestamp: string } }>(
      ref,
      { spec: asked } as ApiObject,
      rig.signal,
    );
  await refused(rig, ask({ audiences: ['vault'] }), /not bound to a pod/);
  await refused(
    rig,
    ask({ audiences: ['vault'], boundObjectRef: { ...bound, uid: undefined } }),
    /without a uid/,
  );
  await assert.rejects(rig.done(ask({ boundObjectRef: { ...bound, uid: 'old' } })), says('API_CONFLICT'));
  await assert.rejects(rig.done(ask({ boundObjectRef: { ...bound, name: 'z' } })), says('API_NOT_FOUND'));
  await refused(
    rig,
    ask({ audiences: ['vault'], boundObjectRef: { ...bound, name: 'b', uid: other.metadata.uid } }),
  );
  await refused(rig, ask({ audiences: ['else'], boundObjectRef: bound }), /audience "else"/);
  await refused(rig, ask({ audiences: ['vault', 'else'], boundObjectRef: bound }));
  await assert.rejects(
    rig.done(ask({ audiences: ['vault'], expirationSeconds: 60, boundObjectRef: bound })),
    says('API_INVALID'),
  );
  const answer = await rig.done(ask({ audiences: ['vault'], expirationSeconds: 600, boundObjectRef: bound }));
  assert.equal(answer.status.expirationTimestamp, '2026-01-01T00:10:00Z');
  const claims = JSON.parse(Buffer.from(answer.status.token.split('.')[1] ?? '', 'base64url').toString());
  assert.deepEqual([claims.sub, claims.aud], ['system:serviceaccount:default:sa', ['vault']]);
  assert.deepEqual(claims['kubernetes.io'].pod, { name: 'a', uid: metadata.uid });
  const again = await rig.done(ask({}, rig.admin));
  assert.notEqual(again.status.token, answer.status.token);
});

test("reviews are answered by the test's rules, and not stored", async () => {
  using rig = new ApiRig({
    reviewToken: ({ token }) => ({ authenticated: token === 'good', user: { username: 'u', groups: ['g'] } }),
    reviewAccess: ({ user }) => ({ allowed: user === 'u' }),
  });
  const review = async (resource: ApiResource, spec: object) => {
    const answer = await rig.done(
      rig.node.create<ApiObject & { status: object }>({ resource }, { spec } as ApiObject, rig.signal),
    );
    return answer.status;
  };
  assert.deepEqual(await review(apiResources.tokenReviews, { token: 'good' }), {
    authenticated: true,
    user: { username: 'u', groups: ['g'] },
  });
  assert.deepEqual(await review(apiResources.subjectAccessReviews, { user: 'v' }), { allowed: false });
  assert.deepEqual(rig.api.objects(apiResources.tokenReviews), []);
  using strict = new ApiRig();
  const answer = await strict.done(
    strict.node.create<ApiObject & { status: object }>(
      { resource: apiResources.tokenReviews },
      {},
      strict.signal,
    ),
  );
  assert.deepEqual(answer.status, { authenticated: false });
});

test('certificates are signed or denied, and a bootstrap user may not request anything else', async () => {
  using rig = new ApiRig({
    signer: ({ spec }) => (spec?.['request'] === 'bad' ? { denied: 'no' } : { certificate: 'PEM' }),
  });
  const resource = apiResources.certificateSigningRequests;
  const newcomer = rig.api.client(bootstrapUser('abc'));
  const ask = (name: string, request: string) =>
    newcomer.create({ resource }, { metadata: { name }, spec: { request } } as ApiObject, rig.signal);
  const watched = rig.watch(newcomer, { resource });
  await rig.clock.advance(10);
  await rig.done(ask('a', 'good'));
  await rig.done(ask('b', 'bad'));
  await rig.clock.advance(10);
  const [a, b] = rig.api.objects(resource).map(({ status }) => status);
  assert.equal(a?.['certificate'], Buffer.from('PEM').toString('base64'));
  const conditions = (b?.['conditions'] ?? []) as readonly { readonly type: string }[];
  assert.equal(conditions[0]?.type, 'Denied');
  const types = watched.events.map(({ type }) => type);
  assert.equal(types.filter((type) => type === 'MODIFIED').length, 2);
  await refused(rig, newcomer.get(podRef('a'), {}, rig.signal));
});

test('an approval changes only the conditions of a request', async () => {
  using rig = new ApiRig();
  const resource = apiResources.certificateSigningRequests;
  const csr = rig.api.put(resource, { metadata: { name: 'a' }, spec: { request: 'r' } }) as ApiObject &
    object;
  const conditions = [{ type: 'Approved', status: 'True' }];
  const approved = { ...csr, spec: { request: 'x' }, status: { conditions, certificate: 'c' } } as ApiObject;
  await rig.done(rig.admin.update({ resource, name: 'a', subresource: 'approval' }, approved, rig.signal));
  const after = rig.api.object({ resource, name: 'a' });
  assert.deepEqual(after?.status, { conditions });
  assert.equal(after?.spec?.['request'], 'r');
});

test("requests outside of a kubelet's permissions are rejected", async () => {
  using rig = new ApiRig();
  rig.api.put(apiResources.services, { metadata: { name: 's' } });
  await rig.done(rig.node.list({ resource: apiResources.services }, rig.signal));
  const ref = { resource: apiResources.services, namespace: 'default', name: 's' };
  await refused(rig, rig.node.delete(ref, {}, rig.signal));
  const stranger: ApiResource = {
    group: 'apps',
    version: 'v1',
    plural: 'deployments',
    kind: 'Deployment',
    scope: 'namespace',
  };
  await refused(rig, rig.node.list({ resource: stranger }, rig.signal));
});
