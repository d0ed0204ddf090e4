import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeUser } from '../../../test/fakes/api-users.ts';
import { KindsRig, named, requestFor } from '../../../test/fakes/kinds-rig.ts';
import { refusedWith } from '../../../test/fakes/local-api-rig.ts';
import { type ApiResource, apiResources, type JsonObject } from '../../api/index.ts';
import { serverResources } from '../api/index.ts';

const { serviceAccounts, certificateSigningRequests } = apiResources;

test('records the requesting user in a certificate signing request and rejects system:masters', async () => {
  using harness = new KindsRig();
  const spec = {
    request: requestFor({ commonName: 'system:node:n1', organizations: ['system:nodes'] }),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
    username: 'somebody else',
  };
  const created = await harness.create(certificateSigningRequests, named('c', { spec }), {
    user: nodeUser('n1'),
  });
  assert.equal(created.spec?.['username'], 'system:node:n1');
  assert.deepEqual(created.spec?.['groups'], ['system:nodes', 'system:authenticated']);
  const bad = { ...spec, request: 'eA==', usages: ['x'], signerName: 'x', expirationSeconds: 5 };
  assert.match(
    await harness.refusal(certificateSigningRequests, named('d', { spec: bad })),
    /spec\.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST, spec\.usages\[0\]: Unsupported value: "x".*spec\.signerName: .*spec\.expirationSeconds: Invalid value: 5: may not specify a duration less than 600 seconds \(10 minutes\)/,
  );
  const master = {
    ...spec,
    signerName: 'kubernetes.io/kube-apiserver-client',
    request: requestFor({ organizations: ['system:masters'] }),
  };
  await refusedWith(harness.create(certificateSigningRequests, named('e', { spec: master })), 403);
});

test('accepts the approval of a certificate signing request once, and only through the approval subresource', async () => {
  using harness = new KindsRig();
  const spec = { request: requestFor({}), signerName: 'example.com/x', usages: ['client auth'] };
  const created = await harness.create(certificateSigningRequests, named('c', { spec }));
  const approved = { ...created, status: { conditions: [{ type: 'Approved', status: 'True' }] } };
  const { message } = await refusedWith(
    harness.update(certificateSigningRequests, approved, { subresource: 'status' }),
    422,
  );
  assert.match(message, /status\.conditions: Forbidden: updates may not add a condition of type "Approved"/);
  const done = await harness.update(certificateSigningRequests, approved, { subresource: 'approval' });
  const [condition] = (done.status?.['conditions'] ?? []) as readonly JsonObject[];
  assert.equal(typeof condition?.['lastUpdateTime'], 'string');
  const denied = { ...done, status: { conditions: [condition, { type: 'Denied', status: 'True' }] } };
  assert.match(
    (await refusedWith(harness.update(certificateSigningRequests, denied, { subresource: 'approval' }), 422))
      .message,
    /Approved and Denied conditions are mutually exclusive/,
  );
  const other = await harness.update(certificateSigningRequests, {
    ...done,
    spec: { ...done.spec, usages: ['any'] },
  });
  assert.deepEqual(other.spec?.['usages'], ['client auth']);
});

test('issues a service account token with the requested lifetime', async () => {
  using harness = new KindsRig();
  await harness.create(serviceAccounts, named('sa'));
  const ask = (spec: JsonObject) =>
    harness.rig.object('create', serviceAccounts, { name: 'sa', subresource: 'token', body: { spec } });
  const created = await ask({});
  assert.equal(created.kind, 'TokenRequest');
  assert.equal(created.status?.['token'], 'token-1');
  const [claims] = harness.claims;
  assert.equal(claims?.sub, 'system:serviceaccount:default:sa');
  assert.deepEqual(claims?.aud, ['https://issuer']);
  assert.equal((claims?.exp ?? 0) - (claims?.iat ?? 0), 3_600);
  await refusedWith(
    ask({ expirationSeconds: 5 }),
    422,
    'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes',
  );
  await refusedWith(
    ask({ boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } }),
    404,
    'pods "p" not found',
  );
  await refusedWith(ask({ boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'p' } }), 400);
});

test('binds a token to a pod of the service account, and rejects token requests of nodes that do not run the pod', async () => {
  using harness = new KindsRig();
  await harness.create(serviceAccounts, named('sa'));
  const pod = await harness.rig.pod('p', {
    spec: {
      serviceAccountName: 'sa',
      volumes: [{ name: 't', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }],
    },
  });
  const ask = (uid: string | undefined, node = 'n1', audiences: readonly string[] = []) =>
    harness.rig.object('create', serviceAccounts, {
      name: 'sa',
      subresource: 'token',
      user: nodeUser(node),
      body: {
        spec: {
          audiences,
          boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', ...(uid && { uid }) },
        },
      },
    });
  await ask(pod.metadata.uid);
  assert.deepEqual(harness.claims[0]?.['kubernetes.io'].pod, { name: 'p', uid: pod.metadata.uid });
  assert.deepEqual(harness.claims[0]?.['kubernetes.io'].node, { name: 'n1', uid: '' });
  await refusedWith(ask('other'), 409);
  await refusedWith(ask(undefined), 403);
  await refusedWith(ask(pod.metadata.uid, 'n2'), 403);
  await refusedWith(ask(pod.metadata.uid, 'n1', ['vault']), 403);
});

test('issues a token to a node for the CSI driver of a bound claim', async () => {
  using harness = new KindsRig();
  const { csiDrivers, persistentVolumes, persistentVolumeClaims } = apiResources;
  await harness.create(serviceAccounts, named('sa'));
  await harness.create(csiDrivers, named('d.example', { spec: { tokenRequests: [{ audience: 'vault' }] } }));
  const accessModes = ['ReadWriteOnce'];
  const csi = { driver: 'd.example', volumeHandle: 'h' };
  await harness.create(
    persistentVolumes,
    named('pv', { spec: { accessModes, capacity: { storage: '1Gi' }, csi } }),
  );
  const resources = { requests: { storage: '1Gi' } };
  await harness.create(
    persistentVolumeClaims,
    named('c', { spec: { accessModes, resources, volumeName: 'pv', storageClassName: '' } }),
  );
  const { metadata } = await harness.rig.pod('p', {
    spec: {
      serviceAccountName: 'sa',
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
    },
  });
  const ask = (audience: string) => {
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: metadata.uid };
    const body = { spec: { audiences: [audience], boundObjectRef } };
    return harness.rig.object('create', serviceAccounts, {
      name: 'sa',
      subresource: 'token',
      user: nodeUser('n1'),
      body,
    });
  };
  await ask('vault');
  await refusedWith(ask('other'), 403);
});

test('computes reviews without storing them', async () => {
  using harness = new KindsRig();
  const ask = (resource: ApiResource, body: JsonObject) => harness.rig.object('create', resource, { body });
  const review = await ask(apiResources.tokenReviews, { spec: { token: 'bad' } });
  assert.deepEqual(review.status, { user: {}, error: 'invalid bearer token' });
  await refusedWith(
    ask(apiResources.tokenReviews, {}),
    400,
    'token is required for TokenReview in authentication',
  );
  const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'a' };
  const self = await ask(serverResources.selfSubjectAccessReviews, { spec: { resourceAttributes } });
  assert.deepEqual(self.status, { allowed: true });
  assert.deepEqual(harness.asked[0], {
    to: 'resource',
    verb: 'get',
    resource: 'pods',
    namespace: 'a',
    group: '',
    version: '',
    subresource: '',
    name: '',
  });
  const other = await ask(apiResources.subjectAccessReviews, { spec: { user: 'u', resourceAttributes } });
  assert.deepEqual(other.status, { allowed: false });
  await refusedWith(
    ask(apiResources.subjectAccessReviews, { spec: { resourceAttributes } }),
    422,
    '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified',
  );
  await refusedWith(
    ask(serverResources.localSubjectAccessReviews, { spec: { user: 'u', resourceAttributes } }),
    422,
  );
  const who = await ask(serverResources.selfSubjectReviews, {});
  assert.deepEqual(who.status, { userInfo: { username: 'kubernetes-admin', groups: ['system:masters'] } });
});
