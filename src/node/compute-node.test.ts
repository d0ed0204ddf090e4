import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainSettings } from '../../test/fakes/node-world.ts';
import { instant, parseQuantity } from '../lib/index.ts';
import { type AmountFacts, computeNode, isExtended, nodeAmounts } from './compute-node.ts';
import type { NodeFacts } from './node-facts.ts';
import { isNodeChanged } from './node-status-writer.ts';

const now = instant(Date.UTC(2026, 0, 1, 0, 0, 0, 999));
const facts: NodeFacts = {
  addresses: {
    local: [{ interface: 'eth0', address: '10.0.0.5' }],
    lookedUp: [],
    routes: { ipv4: ['eth0'], ipv6: [] },
  },
  system: { machineId: 'm', systemUuid: 's', bootId: 'b', kernelVersion: '6.1', osImage: 'Debian' },
  machine: { milliCpu: 2000, memory: 1024 ** 3, ephemeralStorage: 1024 ** 3, hugePages: new Map(), swap: 0 },
  devices: undefined,
  runtime: {
    name: 'containerd',
    version: '2.1.0',
    handlers: [
      { name: 'runc', recursiveReadOnlyMounts: true, userNamespaces: true },
      { name: '', recursiveReadOnlyMounts: true, userNamespaces: false },
    ],
    supplementalGroupsPolicy: true,
  },
  images: [{ names: ['a'], sizeBytes: 1 }],
  problems: [],
  warnings: [],
  pressures: new Set(),
  volumesInUse: undefined,
};
const bare = { metadata: { name: 'n1' } };

test("publishes the machine's facts and the features of the container runtime", () => {
  const { node } = computeNode(bare, { settings: plainSettings, facts, now });
  assert.deepEqual(node.status?.nodeInfo, {
    machineID: 'm',
    systemUUID: 's',
    bootID: 'b',
    kernelVersion: '6.1',
    osImage: 'Debian',
    containerRuntimeVersion: 'containerd://2.1.0',
    kubeletVersion: 'v1.36.4',
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: 'amd64',
  });
  assert.deepEqual(node.status?.daemonEndpoints, { kubeletEndpoint: { Port: 10250 } });
  assert.deepEqual(
    node.status?.runtimeHandlers?.map(({ name }) => name),
    ['', 'runc'],
  );
  assert.deepEqual(node.status?.runtimeHandlers?.[0]?.features, {
    recursiveReadOnlyMounts: true,
    userNamespaces: false,
  });
  assert.deepEqual(node.status?.features, { supplementalGroupsPolicy: true });
  assert.deepEqual(node.status?.images, facts.images);
  assert.equal(node.status?.conditions?.[0]?.lastHeartbeatTime, '2026-01-01T00:00:00Z');
});

test('publishes swap if the machine has any, and declared features sorted', () => {
  const machine = { ...facts.machine, swap: 4096 } as NodeFacts['machine'];
  const settings = { ...plainSettings, declaredFeatures: ['B', 'A'] };
  const { status } = computeNode(bare, { settings, facts: { ...facts, machine }, now }).node;
  assert.deepEqual(status?.nodeInfo?.swap, { capacity: 4096 });
  assert.deepEqual(status?.declaredFeatures, ['A', 'B']);
});

test('keeps runtime fields while the runtime has not responded yet', () => {
  const { node } = computeNode(bare, { settings: plainSettings, facts, now });
  const later = computeNode(node, {
    settings: plainSettings,
    facts: { ...facts, runtime: undefined },
    now,
  }).node;
  assert.deepEqual(later.status?.runtimeHandlers, node.status?.runtimeHandlers);
  assert.equal(later.status?.nodeInfo?.containerRuntimeVersion, 'containerd://2.1.0');
  const silent = computeNode(bare, {
    settings: plainSettings,
    facts: { ...facts, runtime: undefined },
    now,
  }).node;
  assert.equal(silent.status?.nodeInfo?.containerRuntimeVersion, 'unknown://Unknown');
});

test('publishes the address annotation for the cloud provider, and removes it when it is not configured any more', () => {
  const settings = { ...plainSettings, cloudProvider: 'external', ips: ['10.0.0.5'] } as const;
  const { node } = computeNode(bare, { settings, facts, now });
  assert.equal(node.metadata?.annotations?.['alpha.kubernetes.io/provided-node-ip'], '10.0.0.5');
  const { node: later } = computeNode(node, { settings: plainSettings, facts, now });
  assert.deepEqual(later.metadata?.annotations, {});
});

test('computes the same Node from the same facts a minute later, even if the API server dropped or reordered fields', () => {
  const { node } = computeNode(bare, { settings: plainSettings, facts, now });
  const later = computeNode(node, { settings: plainSettings, facts, now: instant(now + 60_000) }).node;
  assert.equal(isNodeChanged(node, later), false);
  const { conditions = [], ...status } = node.status ?? {};
  const nodeInfo = { ...status.nodeInfo, kubeProxyVersion: undefined } as never;
  const stored = {
    ...node,
    status: { ...status, nodeInfo, volumesInUse: [], conditions: conditions.toReversed() },
  };
  assert.equal(isNodeChanged(stored, later), false);
  assert.equal(isNodeChanged(node, { ...later, status: { ...later.status, images: [] } }), true);
});

const gi = 1024 ** 3;
const machine = {
  milliCpu: 4_000,
  memory: 8 * gi,
  ephemeralStorage: 100 * gi,
  hugePages: new Map<string, number>(),
  swap: 0,
};
const amountFacts: AmountFacts = { machine, devices: undefined, before: {}, extended: 'kept' };

test('computes the capacity of the machine, all of it allocatable without reservations', () => {
  const all = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  assert.deepEqual(nodeAmounts(plainSettings, amountFacts), { capacity: all, allocatable: all });
});

test('subtracts reservations and eviction thresholds from allocatable', () => {
  const settings = {
    ...plainSettings,
    reserved: [
      { cpu: '500m', memory: '1Gi' },
      { cpu: '100m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
    ],
    hardEviction: { memory: { quantity: parseQuantity('512Mi') }, nodefs: { percent: 10 } },
  };
  const { capacity, allocatable } = nodeAmounts(settings, amountFacts);
  assert.equal(capacity['memory'], '8Gi');
  assert.deepEqual(allocatable, { cpu: '3400m', memory: '6Gi', pods: '110', 'ephemeral-storage': '89Gi' });
});

test('prefers reservedSystemCPUs to reserved amounts of CPU', () => {
  const settings = { ...plainSettings, reserved: [{ cpu: '100m' }], reservedCpus: 2 };
  assert.equal(nodeAmounts(settings, amountFacts).allocatable['cpu'], '2');
});

test('allocatable is never negative', () => {
  const settings = { ...plainSettings, reserved: [{ memory: '9Gi' }] };
  assert.equal(nodeAmounts(settings, amountFacts).allocatable['memory'], '0');
});

test('counts huge pages separately, and subtracts them from memory', () => {
  const hugePages = new Map([
    ['2MB', 2 * gi],
    ['1GB', gi],
    ['64KB', 0],
  ]);
  const { capacity, allocatable } = nodeAmounts(plainSettings, {
    ...amountFacts,
    machine: { ...machine, hugePages },
  });
  assert.equal(capacity['hugepages-2Mi'], '2Gi');
  assert.equal(capacity['hugepages-1Gi'], '1Gi');
  assert.equal(capacity['hugepages-64Ki'], '0');
  assert.equal(allocatable['memory'], '5Gi');
});

test('removes a page size that the machine no longer has', () => {
  const before = { capacity: { 'hugepages-1Gi': '4Gi' }, allocatable: { 'hugepages-1Gi': '4Gi' } };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...amountFacts, before });
  assert.ok(!('hugepages-1Gi' in capacity) && !('hugepages-1Gi' in allocatable));
});

test('keeps resources that another component published, and removes from allocatable the resources that the capacity no longer has', () => {
  const before = {
    capacity: { 'example.com/dongle': '4' },
    allocatable: { 'example.com/dongle': '4', 'example.com/gone': '1' },
  };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...amountFacts, before });
  assert.equal(capacity['example.com/dongle'], '4');
  assert.equal(allocatable['example.com/dongle'], '4');
  assert.ok(!('example.com/gone' in allocatable));
});

test('publishes devices of device plugins, and removed ones as zero', () => {
  const devices = {
    capacity: { 'gpu.example/card': '4' },
    allocatable: { 'gpu.example/card': '3' },
    removed: ['nic.example/vf'],
  };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...amountFacts, devices });
  assert.deepEqual([capacity['gpu.example/card'], allocatable['gpu.example/card']], ['4', '3']);
  assert.deepEqual([capacity['nic.example/vf'], allocatable['nic.example/vf']], ['0', '0']);
});

test('sets devices of a previous boot to zero, but not native resources', () => {
  const before = { capacity: { 'gpu.example/card': '4', 'attachable.kubernetes.io/x': '9' } };
  const { capacity } = nodeAmounts(plainSettings, { ...amountFacts, before, extended: 'zeroed' });
  assert.equal(capacity['gpu.example/card'], '0');
  assert.equal(capacity['attachable.kubernetes.io/x'], '9');
  assert.deepEqual(['cpu', 'a/b', 'requests.a/b', 'x.kubernetes.io/y'].map(isExtended), [
    false,
    true,
    false,
    false,
  ]);
});

test('keeps the spelling of an equal quantity', () => {
  const before = { capacity: { memory: '8192Mi', cpu: '4000m' }, allocatable: { memory: '8589934592' } };
  const { capacity, allocatable } = nodeAmounts(plainSettings, { ...amountFacts, before });
  assert.deepEqual(
    [capacity['memory'], capacity['cpu'], allocatable['memory']],
    ['8192Mi', '4000m', '8589934592'],
  );
});

test('publishes no capacity when the machine is unreadable, and no disk capacity when the disk was not measured', () => {
  const { capacity } = nodeAmounts(plainSettings, { ...amountFacts, machine: undefined });
  assert.deepEqual(capacity, { cpu: '0', memory: '0', pods: '110' });
  const unmeasured = { ...machine, ephemeralStorage: undefined };
  assert.ok(
    !('ephemeral-storage' in nodeAmounts(plainSettings, { ...amountFacts, machine: unmeasured }).capacity),
  );
});
