import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiObject, apiResources, isApiCode } from '../../../src/api/index.ts';
import type { ErrorCode } from '../../../src/lib/index.ts';
import type { StoredObject } from '../../../src/local-api/api/index.ts';
import { ApiRig, podRef, pods } from '../../fakes/api-rig.ts';

type Whole = StoredObject & ApiObject;
const says = (code: ErrorCode) => (error: unknown) => isApiCode(error, code);
const home = { resource: pods, namespace: 'default' };
const aPod = (name: string, extra: object = {}) => ({
  metadata: { name },
  spec: { containers: [], ...extra },
});

test('a new object gets a UID, a version and a creation time; a new pod gets its status and defaults', async () => {
  using rig = new ApiRig();
  const sent = {
    metadata: { name: 'a', uid: 'mine' },
    spec: { containers: [] },
    status: { phase: 'Running' },
  };
  const pod = await rig.done(rig.admin.create<Whole>(home, sent as ApiObject, rig.signal));
  assert.match(pod.metadata.uid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(pod.metadata.creationTimestamp, '2026-01-01T00:00:00Z');
  assert.equal(pod.metadata.generation, 1);
  assert.equal(pod.metadata.namespace, 'default');
  assert.deepEqual([pod.apiVersion, pod.kind], ['v1', 'Pod']);
  assert.deepEqual(pod.status, { phase: 'Pending', qosClass: 'BestEffort' });
  assert.equal(pod.spec?.['terminationGracePeriodSeconds'], 30);
  assert.deepEqual(await rig.get(podRef('a')), pod);
});

test('one counter gives all objects their versions', () => {
  using rig = new ApiRig();
  const pod = rig.pod('a');
  const node = rig.api.put(apiResources.nodes, { metadata: { name: 'n1' } });
  const again = rig.pod('a', { spec: { hostNetwork: true } });
  const versions = [pod, node, again].map(({ metadata }) => Number(metadata.resourceVersion));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
  assert.equal(rig.api.version, again.metadata.resourceVersion);
  assert.deepEqual([pod.metadata.generation, again.metadata.generation], [1, 2]);
  assert.equal(pod.metadata.uid, again.metadata.uid);
});

test('names are unique, generated names are random', async () => {
  using rig = new ApiRig();
  rig.pod('a');
  await assert.rejects(rig.done(rig.admin.create(home, aPod('a'), rig.signal)), says('API_CONFLICT'));
  await assert.rejects(rig.done(rig.admin.create(home, { metadata: {} }, rig.signal)), says('API_INVALID'));
  const object = { metadata: { generateName: 'csr-' }, spec: {} } as ApiObject;
  const resource = apiResources.certificateSigningRequests;
  const [one, two] = [1, 2].map(() => rig.done(rig.node.create<Whole>({ resource }, object, rig.signal)));
  const names = [(await one)?.metadata.name, (await two)?.metadata.name];
  assert.match(names[0] ?? '', /^csr-[b-z2-9]{5}$/);
  assert.notEqual(names[0], names[1]);
  const csr = rig.api.objects(resource)[0];
  assert.deepEqual(csr?.spec, {
    username: 'system:node:n1',
    groups: ['system:nodes', 'system:authenticated'],
  });
});

test('objects are stored under their namespace and name', async () => {
  using rig = new ApiRig();
  const stranger = { metadata: { name: 'a', namespace: 'other' } };
  await assert.rejects(rig.done(rig.admin.create(home, stranger, rig.signal)), says('API_INVALID'));
  await assert.rejects(
    rig.done(rig.admin.create({ resource: pods }, aPod('a'), rig.signal)),
    says('API_INVALID'),
  );
  const ofCluster = await rig.done(
    rig.admin.create<Whole>({ resource: apiResources.nodes }, stranger, rig.signal),
  );
  assert.equal(ofCluster.metadata.namespace, undefined);
  const versioned = { metadata: { name: 'a', resourceVersion: '7' } };
  await assert.rejects(rig.done(rig.admin.create(home, versioned, rig.signal)), says('API_FAILED'));
  await assert.rejects(rig.get(podRef('a')), says('API_NOT_FOUND'));
});

test('an update must have the latest version and the UID of the object', async () => {
  using rig = new ApiRig();
  const first = rig.pod('a') as Whole;
  rig.pod('a', { spec: { hostNetwork: true } });
  const update = (object: ApiObject) => rig.done(rig.admin.update<Whole>(podRef('a'), object, rig.signal));
  await assert.rejects(update(first), says('API_CONFLICT'));
  const other = { ...first, metadata: { ...first.metadata, resourceVersion: undefined, uid: 'other' } };
  await assert.rejects(update(other), says('API_CONFLICT'));
  const renamed = { metadata: { name: 'b' } };
  await assert.rejects(update(renamed), says('API_INVALID'));
  const blind = await update({ ...first, metadata: { ...first.metadata, resourceVersion: undefined } });
  assert.equal(blind.spec?.['hostNetwork'], undefined);
  await assert.rejects(rig.done(rig.admin.update(podRef('z'), aPod('z'), rig.signal)), says('API_NOT_FOUND'));
});

test('leases must be updated by version, and are created by an update if missing', async () => {
  using rig = new ApiRig();
  const ref = { resource: apiResources.leases, namespace: 'kube-node-lease', name: 'n1' };
  const lease = { metadata: { name: 'n1', namespace: 'kube-node-lease' }, spec: { holderIdentity: 'n1' } };
  const made = await rig.done(rig.node.update<Whole>(ref, lease, rig.signal));
  await assert.rejects(rig.done(rig.node.update(ref, lease, rig.signal)), says('API_INVALID'));
  const renewed = { ...made, spec: { holderIdentity: 'n1', renewTime: '2026-01-01T00:00:10.000000Z' } };
  const next = await rig.done(rig.node.update<Whole>(ref, renewed, rig.signal));
  assert.ok(Number(next.metadata.resourceVersion) > Number(made.metadata.resourceVersion));
  await assert.rejects(rig.done(rig.node.update(ref, renewed, rig.signal)), says('API_CONFLICT'));
});

test('an update without changes creates no version and no event', async () => {
  using rig = new ApiRig();
  const pod = rig.pod('a', { status: { phase: 'Running' } });
  const patch = { kind: 'strategic', body: { status: { phase: 'Running' } } } as const;
  const same = await rig.done(rig.node.patch<Whole>(podRef('a', 'status'), patch, rig.signal));
  assert.equal(same.metadata.resourceVersion, pod.metadata.resourceVersion);
  assert.equal(rig.api.version, pod.metadata.resourceVersion);
});

test('the status is written separately from the spec', async () => {
  using rig = new ApiRig();
  const pod = rig.pod('a', { status: { phase: 'Running' } }) as Whole;
  const both = { ...pod, spec: { ...pod.spec, hostNetwork: true }, status: { phase: 'Failed' } };
  const updated = await rig.done(rig.admin.update<Whole>(podRef('a'), both, rig.signal));
  assert.equal(updated.status?.['phase'], 'Running');
  assert.equal(updated.metadata.generation, 2);
  const body = {
    metadata: { annotations: { x: 'y' } },
    spec: { hostNetwork: false },
    status: { phase: 'Failed' },
  };
  const patched = await rig.done(
    rig.node.patch<Whole>(podRef('a', 'status'), { kind: 'strategic', body }, rig.signal),
  );
  assert.deepEqual([patched.status?.['phase'], patched.status?.['qosClass']], ['Failed', 'BestEffort']);
  assert.deepEqual([patched.spec?.['hostNetwork'], patched.metadata.generation], [true, 2]);
  assert.deepEqual(patched.metadata.annotations, { x: 'y' });
});

test('a patch with the UID of another pod is rejected, one with another version is a conflict', async () => {
  using rig = new ApiRig();
  const pod = rig.pod('a');
  const patch = (uid: string, resourceVersion?: string) =>
    rig.done(
      rig.node.patch<Whole>(
        podRef('a', 'status'),
        { kind: 'strategic', body: { metadata: { uid, resourceVersion }, status: { phase: 'Running' } } },
        rig.signal,
      ),
    );
  await assert.rejects(patch('another'), says('API_INVALID'));
  await assert.rejects(patch(pod.metadata.uid, '1'), says('API_CONFLICT'));
  assert.equal((await patch(pod.metadata.uid)).status?.['phase'], 'Running');
});

test('all patch types are accepted, and invalid patches rejected', async () => {
  using rig = new ApiRig();
  rig.api.put(apiResources.nodes, { metadata: { name: 'n', finalizers: ['a'] }, spec: {} });
  const ref = { resource: apiResources.nodes, name: 'n' };
  const patch = (kind: 'json' | 'merge' | 'strategic', body: unknown) =>
    rig.done(rig.admin.patch<Whole>(ref, { kind, body }, rig.signal));
  await patch('strategic', { metadata: { finalizers: ['b'] } });
  await patch('json', [{ op: 'add', path: '/metadata/finalizers/-', value: 'c' }]);
  assert.deepEqual((await patch('merge', { spec: { podCIDR: 'x' } })).metadata.finalizers, ['b', 'a', 'c']);
  assert.deepEqual((await patch('merge', { metadata: { finalizers: null } })).metadata.finalizers, undefined);
  await assert.rejects(patch('json', [{ op: 'test', path: '/kind', value: 'Pod' }]), says('API_INVALID'));
  await assert.rejects(patch('strategic', { metadata: { ownerReferences: [{}] } }), says('API_INVALID'));
});

test('a permanently terminated container cannot run again', async () => {
  using rig = new ApiRig();
  const ended = (exitCode: number) => [{ name: 'main', state: { terminated: { exitCode } } }];
  const runs = { containerStatuses: [{ name: 'main', state: { running: {} } }] };
  const tryAll = async (spec: object, exitCode: number) => {
    const name = `p${rig.api.version}`;
    rig.pod(name, { spec, status: { containerStatuses: ended(exitCode) } });
    const patch = { kind: 'strategic', body: { status: runs } } as const;
    return await rig.done(rig.node.patch(podRef(name, 'status'), patch, rig.signal)).then(
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
  using rig = new ApiRig();
  rig.pod('a');
  const refused = [
    { podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] },
    { podIP: '10.0.0.9', podIPs: [{ ip: '10.0.0.1' }] },
    { hostIP: 'fd::1', hostIPs: [{ ip: 'fd::1' }, { ip: '10.0.0.1' }, { ip: '10.0.0.2' }] },
    { qosClass: 'Guaranteed' },
  ];
  for (const status of refused) {
    const patch = { kind: 'merge', body: { status } } as const;
    await assert.rejects(
      rig.done(rig.node.patch(podRef('a', 'status'), patch, rig.signal)),
      says('API_INVALID'),
    );
  }
});

test('the observed generation never decreases', async () => {
  using rig = new ApiRig();
  const conditions = [{ type: 'Ready', status: 'True', observedGeneration: 3 }];
  rig.pod('a', { status: { observedGeneration: 3, conditions } });
  const body = { status: { observedGeneration: null, conditions: [{ type: 'Ready', status: 'False' }] } };
  const pod = await rig.done(
    rig.node.patch<Whole>(podRef('a', 'status'), { kind: 'merge', body }, rig.signal),
  );
  assert.equal(pod.status?.['observedGeneration'], 3);
  assert.deepEqual(pod.status?.['conditions'], [{ type: 'Ready', status: 'False', observedGeneration: 3 }]);
});

test('an immutable secret cannot be changed', async () => {
  using rig = new ApiRig();
  rig.api.put(apiResources.secrets, { metadata: { name: 's' }, immutable: true, data: { a: 'eA==' } });
  const ref = { resource: apiResources.secrets, namespace: 'default', name: 's' };
  const patch = { kind: 'merge', body: { data: { a: 'eQ==' } } } as const;
  await assert.rejects(rig.done(rig.admin.patch(ref, patch, rig.signal)), says('API_INVALID'));
});

test('a pod is bound once', async () => {
  using rig = new ApiRig();
  rig.pod('a', { spec: { nodeName: undefined } });
  const bound = rig.api.bindPod('default', 'a', 'n1');
  assert.equal(bound.spec?.['nodeName'], 'n1');
  assert.equal(bound.metadata.generation, 1);
  assert.throws(() => rig.api.bindPod('default', 'a', 'n2'), says('API_CONFLICT'));
  rig.pod('b', { spec: { nodeName: undefined } });
  const binding = { metadata: { name: 'b' }, target: { name: 'n2' } } as ApiObject;
  await rig.done(rig.admin.post(podRef('b', 'binding'), binding, rig.signal));
  assert.equal(rig.api.object(podRef('b'))?.spec?.['nodeName'], 'n2');
});

test('events belong to the namespace of their object, and expire', async () => {
  using rig = new ApiRig({ eventTtlMs: 60_000 });
  const at = { resource: apiResources.events, namespace: 'default' };
  const event = (name: string, involvedObject: object) =>
    ({ metadata: { name }, involvedObject }) as ApiObject;
  await rig.done(rig.node.create(at, event('a', { kind: 'Node', name: 'n1' }), rig.signal));
  await assert.rejects(
    rig.done(rig.node.create(at, event('b', { kind: 'Pod', namespace: 'other' }), rig.signal)),
    says('API_INVALID'),
  );
  await rig.clock.advance(61_000);
  await rig.done(rig.node.create(at, event('c', { kind: 'Pod', namespace: 'default' }), rig.signal));
  assert.deepEqual(
    rig.api.objects(apiResources.events).map(({ metadata }) => metadata.name),
    ['c'],
  );
});

test('responses cannot be changed by their receivers, nor requests after they were sent', async () => {
  using rig = new ApiRig();
  const object = { metadata: { name: 'a' }, spec: { containers: [{ name: 'x' }] } };
  const call = rig.admin.create<Whole>(home, object as ApiObject, rig.signal);
  object.spec.containers[0] = { name: 'changed' };
  const pod = await rig.done(call);
  assert.deepEqual(pod.spec?.['containers'], [{ name: 'x' }]);
  assert.throws(() => Object.assign(pod.metadata, { name: 'b' }), TypeError);
});

test('calls are counted by verb, target and user', async () => {
  using rig = new ApiRig();
  rig.pod('a');
  await rig.get(podRef('a'));
  const patch = { kind: 'merge', body: { status: { phase: 'Running' } } } as const;
  await rig.done(rig.node.patch(podRef('a', 'status'), patch, rig.signal));
  await assert.rejects(rig.done(rig.node.delete(podRef('z'), {}, rig.signal)));
  assert.deepEqual(rig.api.calls.table(), { 'get pods': 1, 'patch pods/status': 1, 'delete pods': 1 });
  assert.equal(rig.api.calls.of({ user: 'system:node:n1' }), 2);
  assert.equal(rig.api.calls.of({ verb: 'patch', target: 'pods/status' }), 1);
  rig.api.calls.reset();
  assert.equal(rig.api.calls.of(), 0);
});
