import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KindsRig, named } from '../../../test/fakes/kinds-rig.ts';
import { refusedWith } from '../../../test/fakes/local-api-rig.ts';
import { apiResources } from '../../api/index.ts';
import { serverResources } from '../api/index.ts';

const { nodes, events, leases } = apiResources;
const { namespaces, priorityClasses, eventsV1, podDisruptionBudgets } = serverResources;

/** An event in the form of events.k8s.io/v1. */
const started = named('e', {
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: 'kubelet',
  reportingInstance: 'n1',
  action: 'Start',
  reason: 'Started',
  type: 'Normal',
  note: 'it runs',
  regarding: { kind: 'Pod', name: 'p', namespace: 'default' },
});

test('stores the status of a node at registration, and afterwards only through the status subresource', async () => {
  using harness = new KindsRig();
  const created = await harness.create(
    nodes,
    named('n1', { spec: { podCIDR: '10.0.0.0/24' }, status: { capacity: { cpu: '2' } } }),
  );
  assert.deepEqual(created.spec, { podCIDR: '10.0.0.0/24', podCIDRs: ['10.0.0.0/24'] });
  assert.deepEqual(created.status, { capacity: { cpu: '2' }, allocatable: { cpu: '2' } });
  const { message } = await refusedWith(
    harness.update(nodes, {
      ...created,
      spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'], taints: [{ key: 'a', effect: 'X' }] },
    }),
    422,
  );
  assert.equal(
    message,
    'Node "n1" is invalid: [metadata.taints[0].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute", spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid]',
  );
});

test('sets the labels and the finalizer of a namespace and protects the system namespaces from deletion', async () => {
  using harness = new KindsRig();
  const created = await harness.create(namespaces, named('a'));
  assert.deepEqual(created.metadata.labels, { 'kubernetes.io/metadata.name': 'a' });
  assert.deepEqual(created.spec, { finalizers: ['kubernetes'] });
  assert.deepEqual(created.status, { phase: 'Active' });
  const retained = await harness.update(namespaces, { ...created, spec: { finalizers: [] } });
  assert.deepEqual(retained.spec, { finalizers: ['kubernetes'] });
  const gone = await harness.rig.object('delete', namespaces, { name: 'a' });
  assert.equal(gone.status?.['phase'], 'Terminating');
  assert.equal(gone.metadata.deletionGracePeriodSeconds, undefined);
  await refusedWith(
    harness.rig.ask('delete', namespaces, { name: 'default' }),
    403,
    'namespaces "default" is forbidden: this namespace may not be deleted',
  );
  assert.match(await harness.refusal(namespaces, named('a.b')), /must not contain dots/);
});

test('rejects an event whose involved object is in another namespace than the event', async () => {
  using harness = new KindsRig();
  const about = (namespace: string) => named('e', { involvedObject: { kind: 'Pod', name: 'p', namespace } });
  await harness.create(events, about('default'));
  assert.equal(
    await harness.refusal(events, { ...about('other'), metadata: { name: 'f' } }),
    'Event "f" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace',
  );
});

test('stores an event once, and returns it through both API groups', async () => {
  using harness = new KindsRig();
  const created = await harness.create(eventsV1, started);
  assert.equal(created.apiVersion, 'events.k8s.io/v1');
  assert.equal(created['note'], 'it runs');
  const retained = await harness.rig.object('get', events, { name: 'e' });
  assert.equal(retained.apiVersion, 'v1');
  assert.equal(retained['message'], 'it runs');
  assert.equal(retained['reportingComponent'], 'kubelet');
  assert.deepEqual(retained['involvedObject'], { kind: 'Pod', name: 'p', namespace: 'default' });
  const { message } = await refusedWith(
    harness.update(eventsV1, { ...created, note: 'else', series: { count: 1 } }),
    422,
  );
  assert.equal(
    message,
    'Event "e" is invalid: [series.count: Invalid value: "": should be at least 2, series.lastObservedTime: Required value, message: Invalid value: "else": field is immutable]',
  );
});

test('patches an event through either API group', async () => {
  using harness = new KindsRig();
  await harness.create(eventsV1, started);
  const series = { count: 2, lastObservedTime: '2026-01-01T00:00:05.000000Z' };
  const patch = { name: 'e', patch: 'strategic', body: { series } } as const;
  const patched = await harness.rig.object('patch', eventsV1, patch);
  assert.deepEqual(patched['series'], series);
  const again = await harness.rig.object('patch', events, { ...patch, body: { message: 'again' } });
  assert.deepEqual(again['series'], series);
  assert.equal((await harness.rig.object('get', eventsV1, { name: 'e' }))['note'], 'again');
});

test('validates events of events.k8s.io more strictly than core events', async () => {
  using harness = new KindsRig();
  assert.equal(
    await harness.refusal(eventsV1, named('e', { regarding: { namespace: 'default' }, deprecatedCount: 2 })),
    'Event "e" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: , count: Invalid value: "": needs to be unset]',
  );
});

test('validates the duration of a lease', async () => {
  using harness = new KindsRig();
  assert.equal(
    await harness.refusal(leases, named('l', { spec: { leaseDurationSeconds: 0 } })),
    'Lease.coordination.k8s.io "l" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
  );
});

test('rejects user-defined priority classes with the prefix system-, with too large a value, or with a second global default', async () => {
  using harness = new KindsRig();
  assert.match(
    await harness.refusal(priorityClasses, named('system-x', { value: 1 })),
    /metadata\.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only\. error: system-x is not a known system priority class$/,
  );
  assert.match(
    await harness.refusal(priorityClasses, named('x', { value: 2_000_000_000 })),
    /value: Forbidden: maximum allowed value of a user defined priority is 1000000000$/,
  );
  const created = await harness.create(priorityClasses, named('a', { value: 1, globalDefault: true }));
  assert.equal(created['preemptionPolicy'], 'PreemptLowerPriority');
  await refusedWith(harness.create(priorityClasses, named('b', { value: 1, globalDefault: true })), 403);
  await refusedWith(
    harness.update(priorityClasses, { ...created, value: 2 }),
    422,
    'PriorityClass.scheduling.k8s.io "a" is invalid: value: Forbidden: may not be changed in an update.',
  );
});

test('rejects a PodDisruptionBudget with both minAvailable and maxUnavailable', async () => {
  using harness = new KindsRig();
  const message = await harness.refusal(
    podDisruptionBudgets,
    named('b', { spec: { minAvailable: 1, maxUnavailable: '101%' } }),
  );
  assert.match(message, /minAvailable and maxUnavailable cannot be both set/);
  assert.match(message, /spec\.maxUnavailable: Invalid value: "101%": must not be greater than 100%/);
});
