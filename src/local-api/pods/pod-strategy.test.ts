import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalPods, type Wish } from '../../../test/fakes/local-pods.ts';
import { apiResources, type JsonObject } from '../../api/index.ts';
import { manifestAnnotation, StatusError, serverResources } from '../api/index.ts';
import { conditionsOf } from './pod-object.ts';

const bare = { metadata: { name: 'a' }, spec: { containers: [{ name: 'm', image: 'x' }] } };

function refusalOf(api: LocalPods, options: Wish): StatusError['status'] {
  try {
    api.do(options);
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  throw new Error('The request was not rejected');
}

function binding(more: JsonObject = {}): Wish {
  const body = { metadata: { name: 'a', ...more }, target: { kind: 'Node', name: 'n1' } };
  return { verb: 'create', name: 'a', subresource: 'binding', body };
}

test('sets the node name, labels and the PodScheduled condition of a bound pod without incrementing its generation', () => {
  using api = new LocalPods();
  api.surround();
  api.do({ verb: 'create', body: bare });
  api.do(binding({ labels: { x: 'y' }, annotations: { z: '1' } }));
  const pod = api.pod();
  assert.equal(pod?.spec?.['nodeName'], 'n1');
  assert.deepEqual(pod?.metadata.labels, { x: 'y', 'topology.kubernetes.io/zone': 'z1' });
  assert.deepEqual(pod?.metadata.annotations, { z: '1' });
  assert.equal(pod?.metadata.generation, 1);
  const [condition] = conditionsOf(pod);
  assert.equal(condition?.['type'], 'PodScheduled');
  assert.equal(condition?.['status'], 'True');
});

test('rejects a binding whose UID or resource version differs from that of the pod', () => {
  using api = new LocalPods();
  api.do({ verb: 'create', body: bare });
  const uid = refusalOf(api, binding({ uid: 'other' }));
  assert.equal(uid.code, 409);
  assert.match(
    uid.message,
    /^Operation cannot be fulfilled on pods "a": Precondition failed: UID in precondition: other/,
  );
  const version = refusalOf(api, binding({ resourceVersion: '1' }));
  assert.equal(version.code, 409);
  assert.equal(api.pod()?.spec?.['nodeName'], undefined);
});

test('rejects the binding of a pod that is being deleted or missing', () => {
  using api = new LocalPods();
  const finalizers = ['example.com/hold'];
  api.do({ verb: 'create', body: { ...bare, metadata: { name: 'a', finalizers } } });
  api.do({ verb: 'delete', name: 'a' });
  const { code, message } = refusalOf(api, binding());
  assert.equal(code, 409);
  assert.match(message, /pod a is being deleted, cannot be assigned to a host$/);
  assert.equal(refusalOf(api, { ...binding({ name: 'b' }), name: 'b' }).code, 404);
});

test('does not store a dry-run binding', async () => {
  using api = new LocalPods();
  api.do({ verb: 'create', body: bare });
  assert.equal((await api.answer({ ...binding(), dryRun: 'yes' })).code, 201);
  assert.equal(api.pod()?.spec?.['nodeName'], undefined);
});

test('lets a mirror pod refer to a secret only if the secret comes from a manifest', () => {
  using api = new LocalPods();
  const secret = (name: string, annotations: JsonObject) =>
    api.do({
      verb: 'create',
      resource: apiResources.secrets,
      body: { metadata: { name, annotations }, type: 'Opaque' },
    });
  secret('beside', { [manifestAnnotation]: 'a.yaml' });
  secret('other', {});
  const mirror = (secretName: string): Wish => ({
    verb: 'create',
    body: {
      metadata: { name: 'a', annotations: { 'kubernetes.io/config.mirror': 'hash' } },
      spec: { ...bare.spec, nodeName: 'n1', volumes: [{ name: 's', secret: { secretName } }] },
    },
  });
  assert.match(refusalOf(api, mirror('other')).message, /a mirror pod may not reference secrets$/);
  api.do(mirror('beside'));
  assert.equal(api.pod()?.spec?.['nodeName'], 'n1');
});

test('rejects a pod with resource claims', () => {
  using api = new LocalPods();
  const resourceClaims = [{ name: 'gpu', resourceClaimName: 'my-gpu' }];
  const { code, message } = refusalOf(api, {
    verb: 'create',
    body: { ...bare, spec: { ...bare.spec, resourceClaims } },
  });
  assert.equal(code, 403);
  assert.match(message, /^pods "a" is forbidden: pod rejected: resource claims are for clusters/);
});

test('sets the DisruptionTarget condition on eviction and deletes the pod with its grace period', () => {
  using api = new LocalPods();
  api.surround();
  api.do({ verb: 'create', body: { ...bare, spec: { ...bare.spec, nodeName: 'n1' } } });
  const observed: string[] = [];
  using _ = api.world.onChange(({ type, object }) => {
    const isMarked = object.metadata.deletionTimestamp !== undefined;
    observed.push(`${type} ${isMarked ? 'marked' : conditionsOf(object).at(-1)?.['type']}`);
  });
  api.do({ verb: 'create', name: 'a', subresource: 'eviction', body: { metadata: { name: 'a' } } });
  assert.deepEqual(observed, ['MODIFIED DisruptionTarget', 'MODIFIED marked']);
  const pod = api.pod();
  assert.equal(pod?.metadata.deletionGracePeriodSeconds, 30);
  const condition = pod && conditionsOf(pod).find(({ type }) => type === 'DisruptionTarget');
  assert.equal(condition?.['reason'], 'EvictionByEvictionAPI');
  assert.equal(condition?.['message'], 'Eviction API: evicting');
});

test('applies the delete options of an eviction', () => {
  using api = new LocalPods();
  api.surround();
  api.do({ verb: 'create', body: { ...bare, spec: { ...bare.spec, nodeName: 'n1' } } });
  const evict = (deleteOptions: JsonObject): Wish => ({
    verb: 'create',
    name: 'a',
    subresource: 'eviction',
    body: { metadata: { name: 'a' }, deleteOptions },
  });
  assert.equal(refusalOf(api, evict({ preconditions: { uid: 'other' } })).code, 409);
  assert.deepEqual(api.pod()?.status?.['conditions'], undefined);
  const { uid, resourceVersion } = api.pod()?.metadata ?? {};
  api.do(evict({ gracePeriodSeconds: 7, preconditions: { uid, resourceVersion } }));
  assert.equal(api.pod()?.metadata.deletionGracePeriodSeconds, 7);
});

test('increments the generation only for spec changes', () => {
  using api = new LocalPods();
  api.do({ verb: 'create', body: bare });
  const change = (body: JsonObject, subresource?: string) => {
    const part = subresource === undefined ? {} : { subresource };
    api.do({ verb: 'patch', name: 'a', patch: 'merge', body, ...part });
    return api.pod()?.metadata.generation;
  };
  assert.equal(change({ metadata: { labels: { a: 'b' } } }), 1);
  assert.equal(change({ status: { phase: 'Running' } }, 'status'), 1);
  assert.equal(change({ spec: { activeDeadlineSeconds: 9 } }), 2);
  assert.equal(
    change({ spec: { ephemeralContainers: [{ name: 'd', image: 'y' }] } }, 'ephemeralcontainers'),
    3,
  );
});

test('treats omitted zero values of a pod update as unchanged', () => {
  using api = new LocalPods();
  const spec = { ...bare.spec, hostNetwork: false, hostname: '', nodeSelector: {}, volumes: [] };
  const created = api.do({ verb: 'create', body: { ...bare, spec } });
  assert.equal(created.spec?.['hostNetwork'], undefined);
  const again = { ...created, spec: { ...created.spec, hostPID: false, imagePullSecrets: [] } };
  const { metadata } = api.do({ verb: 'update', name: 'a', body: again });
  assert.equal(metadata.resourceVersion, created.metadata.resourceVersion);
});

test('rejects changes of immutable fields and lists their paths', () => {
  using api = new LocalPods();
  api.do({ verb: 'create', body: bare });
  const spec = { hostname: 'h', containers: [{ name: 'm', image: 'x', command: ['b'] }] };
  const { message } = refusalOf(api, {
    verb: 'patch',
    name: 'a',
    patch: 'strategic',
    body: { spec },
  });
  assert.match(message, /changed: spec\.containers\[0\]\.command, spec\.hostname; /);
  assert.match(message, /`kubectl replace --force`/);
});

test('rejects changes of ephemeral containers', () => {
  using api = new LocalPods();
  api.do({ verb: 'create', body: bare });
  const put = (list: readonly JsonObject[]): Wish => ({
    verb: 'update',
    name: 'a',
    subresource: 'ephemeralcontainers',
    body: { metadata: { name: 'a' }, spec: { ephemeralContainers: list } },
  });
  api.do(put([{ name: 'd', image: 'y' }]));
  const removed = refusalOf(api, put([]));
  assert.match(
    removed.message,
    /spec\.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed/,
  );
  const changed = refusalOf(api, put([{ name: 'd', image: 'z' }]));
  assert.match(changed.message, /"d" may not be changed\nchanged: spec\.ephemeralContainers\[d\]\.image/);
  api.do(
    put([
      { name: 'd', image: 'y' },
      { name: 'e', image: 'y' },
    ]),
  );
  const list = api.pod()?.spec?.['ephemeralContainers'] ?? [];
  assert.equal((list as readonly unknown[]).length, 2);
});

test('accepts a pod name that is not a DNS label, and returns a warning', () => {
  using api = new LocalPods();
  api.do({ verb: 'create', body: { ...bare, metadata: { name: 'a.b' } } });
  assert.deepEqual(api.warnings, [
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
  ]);
});

test('uses the lowest value when several priority classes are the global default', () => {
  using api = new LocalPods();
  for (const [name, value] of [
    ['one', 7],
    ['two', 5],
  ] as const)
    api.do({
      verb: 'create',
      resource: serverResources.priorityClasses,
      namespace: undefined,
      body: { metadata: { name }, value, globalDefault: true, preemptionPolicy: 'Never' },
    });
  const { spec } = api.do({ verb: 'create', body: bare });
  assert.deepEqual([spec?.['priorityClassName'], spec?.['priority']], ['two', 5]);
  assert.equal(spec?.['preemptionPolicy'], 'Never');
});

test('rejects the creation of a pod in a missing or terminating namespace', () => {
  using api = new LocalPods();
  const missing = refusalOf(api, { verb: 'create', namespace: 'none', body: bare });
  assert.deepEqual([missing.code, missing.message], [404, 'namespaces "none" not found']);
  api.do({
    verb: 'create',
    resource: serverResources.namespaces,
    namespace: undefined,
    body: { metadata: { name: 'going', finalizers: ['example.com/x'] } },
  });
  api.do({ verb: 'delete', resource: serverResources.namespaces, namespace: undefined, name: 'going' });
  const going = refusalOf(api, { verb: 'create', namespace: 'going', body: bare });
  assert.equal(going.code, 403);
  assert.equal(going.details?.causes?.[0]?.reason, 'NamespaceTerminating');
});

test('rejects a pod with an invalid quantity', () => {
  using api = new LocalPods();
  const containers = [{ name: 'm', image: 'x', resources: { limits: { cpu: 'much' } } }];
  const { code, message } = refusalOf(api, { verb: 'create', body: { ...bare, spec: { containers } } });
  assert.equal(code, 400);
  assert.match(message, /^Pod in version "v1" cannot be handled as a Pod: spec\.containers\[0\]\.resources/);
});

test('rejects a status update that restarts a terminated container although its restart policy forbids it', () => {
  using api = new LocalPods();
  api.surround();
  api.do({ verb: 'create', body: { ...bare, spec: { ...bare.spec, restartPolicy: 'Never' } } });
  const state = (now: JsonObject): Wish => ({
    verb: 'patch',
    name: 'a',
    subresource: 'status',
    patch: 'merge',
    body: { status: { containerStatuses: [{ name: 'm', state: now }] } },
  });
  api.do(state({ terminated: { exitCode: 0 } }));
  const { message } = refusalOf(api, state({ terminated: null, running: {} }));
  assert.match(
    message,
    /status\.containerStatuses\[0\]\.state: Forbidden: may not be transitioned to non-terminated/,
  );
});

test('requires that the service account of a pod exists, unless it is the default one', () => {
  using api = new LocalPods();
  const create = { verb: 'create', resource: serverResources.namespaces, namespace: undefined } as const;
  api.do({ ...create, body: { metadata: { name: 'new' } } });
  const { spec } = api.do({ verb: 'create', namespace: 'new', body: bare });
  assert.equal(spec?.['serviceAccountName'], 'default');
  const other = { ...bare, spec: { ...bare.spec, serviceAccountName: 'mine' } };
  const { message } = refusalOf(api, { verb: 'create', namespace: 'new', body: other });
  assert.equal(
    message,
    'pods "a" is forbidden: error looking up service account new/mine: serviceaccount "mine" not found',
  );
});
