import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiObject, apiResources, isApiCode } from '../../../src/api/index.ts';
import type { ErrorCode } from '../../../src/lib/index.ts';
import type { StoredObject } from '../../../src/local-api/api/index.ts';
import { ApiRig, podRef, pods } from '../../fakes/api-rig.ts';

type Whole = StoredObject & ApiObject;
const says = (code: ErrorCode) => (error: unknown) => isApiCode(error, code);
const directory = { resource: pods, namespace: 'default' };
const aPod = (name: string, extra: object = {}) => ({
  metadata: { name },
  spec: { containers: [], ...extra },
});

test('a new object gets a UID, a resource version and a creation time; a new pod gets its status and defaults', async () => {
  using harness = new ApiRig();
  const sent = {
    metadata: { name: 'a', uid: 'mine' },
    spec: { containers: [] },
    status: { phase: 'Running' },
  };
  const pod = await harness.done(harness.admin.create<Whole>(directory, sent as ApiObject, harness.signal));
  assert.match(pod.metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(pod.metadata.creationTimestamp, '2026-01-01T00:00:00Z');
  assert.equal(pod.metadata.generation, 1);
  assert.equal(pod.metadata.namespace, 'default');
  assert.deepEqual([pod.apiVersion, pod.kind], ['v1', 'Pod']);
  assert.deepEqual(pod.status, { phase: 'Pending', qosClass: 'BestEffort' });
  assert.equal(pod.spec?.['terminationGracePeriodSeconds'], 30);
  assert.deepEqual(await harness.get(podRef('a')), pod);
});

test('all objects get their resource versions from one counter', () => {
  using harness = new ApiRig();
  const pod = harness.pod('a');
  const node = harness.api.put(apiResources.nodes, { metadata: { name: 'n1' } });
  const again = harness.pod('a', { spec: { hostNetwork: true } });
  const versions = [pod, node, again].map(({ metadata }) => Number(metadata.resourceVersion));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
  assert.equal(harness.api.version, again.metadata.resourceVersion);
  assert.deepEqual([pod.metadata.generation, again.metadata.generation], [1, 2]);
  assert.equal(pod.metadata.uid, again.metadata.uid);
});

test('object names are unique, and generated names are random', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  await assert.rejects(
    harness.done(harness.admin.create(directory, aPod('a'), harness.signal)),
    says('API_CONFLICT'),
  );
  await assert.rejects(
    harness.done(harness.admin.create(directory, { metadata: {} }, harness.signal)),
    says('API_INVALID'),
  );
  const object = { metadata: { generateName: 'csr-' }, spec: {} } as ApiObject;
  const resource = apiResources.certificateSigningRequests;
  const [one, two] = [1, 2].map(() =>
    harness.done(harness.node.create<Whole>({ resource }, object, harness.signal)),
  );
  const names = [(await one)?.metadata.name, (await two)?.metadata.name];
  assert.match(names[0] ?? '', /^csr-[b-z2-9]{5}$/);
  assert.notEqual(names[0], names[1]);
  const csr = harness.api.objects(resource)[0];
  assert.deepEqual(csr?.spec, {
    username: 'system:node:n1',
    groups: ['system:nodes', 'system:authenticated'],
  });
});

test('objects are stored under their namespace and name', async () => {
  using harness = new ApiRig();
  const stranger = { metadata: { name: 'a', namespace: 'other' } };
  await assert.rejects(
    harness.done(harness.admin.create(directory, stranger, harness.signal)),
    says('API_INVALID'),
  );
  await assert.rejects(
    harness.done(harness.admin.create({ resource: pods }, aPod('a'), harness.signal)),
    says('API_INVALID'),
  );
  const ofCluster = await harness.done(
    harness.admin.create<Whole>({ resource: apiResources.nodes }, stranger, harness.signal),
  );
  assert.equal(ofCluster.metadata.namespace, undefined);
  const versioned = { metadata: { name: 'a', resourceVersion: '7' } };
  await assert.rejects(
    harness.done(harness.admin.create(directory, versioned, harness.signal)),
    says('API_FAILED'),
  );
  await assert.rejects(harness.get(podRef('a')), says('API_NOT_FOUND'));
});

test('an update must have the latest resource version and the UID of the object', async () => {
  using harness = new ApiRig();
  const first = harness.pod('a') as Whole;
  harness.pod('a', { spec: { hostNetwork: true } });
  const update = (object: ApiObject) =>
    harness.done(harness.admin.update<Whole>(podRef('a'), object, harness.signal));
  await assert.rejects(update(first), says('API_CONFLICT'));
  const other = { ...first, metadata: { ...first.metadata, resourceVersion: undefined, uid: 'other' } };
  await assert.rejects(update(other), says('API_CONFLICT'));
  const renamed = { metadata: { name: 'b' } };
  await assert.rejects(update(renamed), says('API_INVALID'));
  const blind = await update({ ...first, metadata: { ...first.metadata, resourceVersion: undefined } });
  assert.equal(blind.spec?.['hostNetwork'], undefined);
  await assert.rejects(
    harness.done(harness.admin.update(podRef('z'), aPod('z'), harness.signal)),
    says('API_NOT_FOUND'),
  );
});

test('leases must be updated by resource version, and an update creates a missing lease', async () => {
  using harness = new ApiRig();
  const ref = { resource: apiResources.leases, namespace: 'kube-node-lease', name: 'n1' };
  const lease = { metadata: { name: 'n1', namespace: 'kube-node-lease' }, spec: { holderIdentity: 'n1' } };
  const created = await harness.done(harness.node.update<Whole>(ref, lease, harness.signal));
  await assert.rejects(harness.done(harness.node.update(ref, lease, harness.signal)), says('API_INVALID'));
  const renewed = { ...created, spec: { holderIdentity: 'n1', renewTime: '2026-01-01T00:00:10.000000Z' } };
  const next = await harness.done(harness.node.update<Whole>(ref, renewed, harness.signal));
  assert.ok(Number(next.metadata.resourceVersion) > Number(created.metadata.resourceVersion));
  await assert.rejects(harness.done(harness.node.update(ref, renewed, harness.signal)), says('API_CONFLICT'));
});

test('an update without changes creates no version and no event', async () => {
  using harness = new ApiRig();
  const pod = harness.pod('a', { status: { phase: 'Running' } });
  const patch = { kind: 'strategic', body: { status: { phase: 'Running' } } } as const;
  const same = await harness.done(harness.node.patch<Whole>(podRef('a', 'status'), patch, harness.signal));
  assert.equal(same.metadata.resourceVersion, pod.metadata.resourceVersion);
  assert.equal(harness.api.version, pod.metadata.resourceVersion);
});

test('the pod status is written separately from the spec', async () => {
  using harness = new ApiRig();
  const pod = harness.pod('a', { status: { phase: 'Running' } }) as Whole;
  const both = { ...pod, spec: { ...pod.spec, hostNetwork: true }, status: { phase: 'Failed' } };
  const updated = await harness.done(harness.admin.update<Whole>(podRef('a'), both, harness.signal));
  assert.equal(updated.status?.['phase'], 'Running');
  assert.equal(updated.metadata.generation, 2);
  const body = {
    metadata: { annotations: { x: 'y' } },
    spec: { hostNetwork: false },
    status: { phase: 'Failed' },
  };
  const patched = await harness.done(
    harness.node.patch<Whole>(podRef('a', 'status'), { kind: 'strategic', body }, harness.signal),
  );
  assert.deepEqual([patched.status?.['phase'], patched.status?.['qosClass']], ['Failed', 'BestEffort']);
  assert.deepEqual([patched.spec?.['hostNetwork'], patched.metadata.generation], [true, 2]);
  assert.deepEqual(patched.metadata.annotations, { x: 'y' });
});

test('a patch with the UID of another pod is rejected, and one with an old resource version is a conflict', async () => {
  using harness = new ApiRig();
  const pod = harness.pod('a');
  const patch = (uid: string, resourceVersion?: string) =>
    harness.done(
      harness.node.patch<Whole>(
        podRef('a', 'status'),
        { kind: 'strategic', body: { metadata: { uid, resourceVersion }, status: { phase: 'Running' } } },
        harness.signal,
      ),
    );
  await assert.rejects(patch('another'), says('API_INVALID'));
  await assert.rejects(patch(pod.metadata.uid, '1'), says('API_CONFLICT'));
  assert.equal((await patch(pod.metadata.uid)).status?.['phase'], 'Running');
});

test('all patch types are accepted, and invalid patches rejected', async () => {
  using harness = new ApiRig();
  harness.api.put(apiResources.nodes, { metadata: { name: 'n', finalizers: ['a'] }, spec: {} });
  const ref = { resource: apiResources.nodes, name: 'n' };
  const patch = (kind: 'json' | 'merge' | 'strategic', body: unknown) =>
    harness.done(harness.admin.patch<Whole>(ref, { kind, body }, harness.signal));
  await patch('strategic', { metadata: { finalizers: ['b'] } });
  await patch('json', [{ op: 'add', path: '/metadata/finalizers/-', value: 'c' }]);
  assert.deepEqual((await patch('merge', { spec: { podCIDR: 'x' } })).metadata.finalizers, ['b', 'a', 'c']);
  assert.deepEqual((await patch('merge', { metadata: { finalizers: null } })).metadata.finalizers, undefined);
  await assert.rejects(patch('json', [{ op: 'test', path: '/kind', value: 'Pod' }]), says('API_INVALID'));
  await assert.rejects(patch('strategic', { metadata: { ownerReferences: [{}] } }), says('API_INVALID'));
});

test('a status in which a permanently terminated container runs again is rejected', async () => {
  using harness = new ApiRig();
  const ended = (exitCode: number) => [{ name: 'main', state: { terminated: { exitCode } } }];
  const runs = { containerStatuses: [{ name: 'main', state: { running: {} } }] };
  const tryAll = async (spec: object, exitCode: number) => {
    const name = `p${harness.api.version}`;
    harness.pod(name, { spec, status: { containerStatuses: ended(exitCode) } });
    const patch = { kind: 'strategic', body: { status: runs } } as const;
    return await harness.done(harness.node.patch(podRef(name, 'status'), patch, harness.signal)).then(
      () => 'taken',
      (error) => (isApiCode(error, 'API_INVALID') ? 'refused' : error),
    );
  };
  assert.equal(await tryAll({ restartPolicy: 'Never' }, 1), 'refused');
  assert.equal(await tryAll({ restartPolicy: 'OnFailure' }, 0), 'refused');
  assert.equal(await tryAll({ restartPolicy: 'OnFailure' }, 1), 'taken');
  assert.equal(await tryAll({ restartPolicy: 'Always' }, 0), 'taken');
  const rules = [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }];
  const containers = [{ name: 'main', restartPolicy: 'Never', restartPolicyRules: rules }];
  assert.equal(await tryAll({ restartPolicy: 'Never', containers }, 42), 'taken');
  assert.equal(await tryAll({ restartPolicy: 'Never', containers }, 41), 'refused');
});

test('a status with invalid addresses or another QoS class is rejected', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  const refused = [
    { podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] },
    { podIP: '10.0.0.9', podIPs: [{ ip: '10.0.0.1' }] },
    { hostIP: 'fd::1', hostIPs: [{ ip: 'fd::1' }, { ip: '10.0.0.1' }, { ip: '10.0.0.2' }] },
    { qosClass: 'Guaranteed' },
  ];
  for (const status of refused) {
    const patch = { kind: 'merge', body: { status } } as const;
    await assert.rejects(
      harness.done(harness.node.patch(podRef('a', 'status'), patch, harness.signal)),
      says('API_INVALID'),
    );
  }
});

test('the observed generation never decreases', async () => {
  using harness = new ApiRig();
  const conditions = [{ type: 'Ready', status: 'True', observedGeneration: 3 }];
  harness.pod('a', { status: { observedGeneration: 3, conditions } });
  const body = { status: { observedGeneration: null, conditions: [{ type: 'Ready', status: 'False' }] } };
  const pod = await harness.done(
    harness.node.patch<Whole>(podRef('a', 'status'), { kind: 'merge', body }, harness.signal),
  );
  assert.equal(pod.status?.['observedGeneration'], 3);
  assert.deepEqual(pod.status?.['conditions'], [{ type: 'Ready', status: 'False', observedGeneration: 3 }]);
});

test('an immutable secret cannot be changed', async () => {
  using harness = new ApiRig();
  harness.api.put(apiResources.secrets, { metadata: { name: 's' }, immutable: true, data: { a: 'eA==' } });
  const ref = { resource: apiResources.secrets, namespace: 'default', name: 's' };
  const patch = { kind: 'merge', body: { data: { a: 'eQ==' } } } as const;
  await assert.rejects(harness.done(harness.admin.patch(ref, patch, harness.signal)), says('API_INVALID'));
});

test('a pod can be bound only once', async () => {
  using harness = new ApiRig();
  harness.pod('a', { spec: { nodeName: undefined } });
  const bound = harness.api.bindPod('default', 'a', 'n1');
  assert.equal(bound.spec?.['nodeName'], 'n1');
  assert.equal(bound.metadata.generation, 1);
  assert.throws(() => harness.api.bindPod('default', 'a', 'n2'), says('API_CONFLICT'));
  harness.pod('b', { spec: { nodeName: undefined } });
  const binding = { metadata: { name: 'b' }, target: { name: 'n2' } } as ApiObject;
  await harness.done(harness.admin.post(podRef('b', 'binding'), binding, harness.signal));
  assert.equal(harness.api.object(podRef('b'))?.spec?.['nodeName'], 'n2');
});

test('events must be in the namespace of their object, and expire', async () => {
  using harness = new ApiRig({ eventTtlMs: 60_000 });
  const at = { resource: apiResources.events, namespace: 'default' };
  const event = (name: string, involvedObject: object) =>
    ({ metadata: { name }, involvedObject }) as ApiObject;
  await harness.done(harness.node.create(at, event('a', { kind: 'Node', name: 'n1' }), harness.signal));
  await assert.rejects(
    harness.done(harness.node.create(at, event('b', { kind: 'Pod', namespace: 'other' }), harness.signal)),
    says('API_INVALID'),
  );
  await harness.clock.advance(61_000);
  await harness.done(
    harness.node.create(at, event('c', { kind: 'Pod', namespace: 'default' }), harness.signal),
  );
  assert.deepEqual(
    harness.api.objects(apiResources.events).map(({ metadata }) => metadata.name),
    ['c'],
  );
});

test('callers cannot change stored objects through responses or sent requests', async () => {
  using harness = new ApiRig();
  const object = { metadata: { name: 'a' }, spec: { containers: [{ name: 'x' }] } };
  const call = harness.admin.create<Whole>(directory, object as ApiObject, harness.signal);
  object.spec.containers[0] = { name: 'changed' };
  const pod = await harness.done(call);
  assert.deepEqual(pod.spec?.['containers'], [{ name: 'x' }]);
  assert.throws(() => Object.assign(pod.metadata, { name: 'b' }), TypeError);
});

test('API calls are counted by verb, target and user', async () => {
  using harness = new ApiRig();
  harness.pod('a');
  await harness.get(podRef('a'));
  const patch = { kind: 'merge', body: { status: { phase: 'Running' } } } as const;
  await harness.done(harness.node.patch(podRef('a', 'status'), patch, harness.signal));
  await assert.rejects(harness.done(harness.node.delete(podRef('z'), {}, harness.signal)));
  assert.deepEqual(harness.api.calls.table(), { 'get pods': 1, 'patch pods/status': 1, 'delete pods': 1 });
  assert.equal(harness.api.calls.of({ user: 'system:node:n1' }), 2);
  assert.equal(harness.api.calls.of({ verb: 'patch', target: 'pods/status' }), 1);
  harness.api.calls.reset();
  assert.equal(harness.api.calls.of(), 0);
});
