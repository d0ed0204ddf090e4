import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainSettings } from '../../test/fakes/node-world.ts';
import { instant } from '../lib/index.ts';
import { computeNode } from './compute-node.ts';
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

test('publishes the machine and the features of its runtime', () => {
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

test('publishes swap if there is any, and declared features sorted', () => {
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

test("publishes the cloud provider's annotation, and removes it when it is not configured any more", () => {
  const settings = { ...plainSettings, cloudProvider: 'external', ips: ['10.0.0.5'] } as const;
  const { node } = computeNode(bare, { settings, facts, now });
  assert.equal(node.metadata?.annotations?.['alpha.kubernetes.io/provided-node-ip'], '10.0.0.5');
  const { node: later } = computeNode(node, { settings: plainSettings, facts, now });
  assert.deepEqual(later.metadata?.annotations, {});
});

test('is unchanged for the same facts a minute later, whatever the server dropped or reordered', () => {
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
