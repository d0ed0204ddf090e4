import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredObject } from '../api/index.ts';
import { addressOf } from './kubelet-dialer.ts';
import { assignedNode, containerOf } from './pod-target.ts';

function pod(spec: object): StoredObject {
  return { metadata: { name: 'web' }, spec } as unknown as StoredObject;
}

test('requires a container name for a stream unless the pod has one container', () => {
  const one = pod({ initContainers: [{ name: 'i' }], containers: [{ name: 'a' }] });
  assert.equal(containerOf(one, null), 'a');
  assert.equal(containerOf(one, 'i'), 'i');
  assert.throws(() => containerOf(one, 'x'), /^StatusError: container x is not valid for pod web$/);
  const two = pod({ initContainers: [{ name: 'i' }], containers: [{ name: 'a' }, { name: 'b' }] });
  assert.throws(
    () => containerOf(two, ''),
    /^StatusError: a container name must be specified for pod web, choose one of: \[i a b\]$/,
  );
});

test('returns no kubelet for an unscheduled pod', () => {
  assert.equal(assignedNode(pod({})), undefined);
  assert.equal(assignedNode(pod({ nodeName: 'n' })), 'n');
});

test('reads the kubelet address from the node status', () => {
  const addresses = [
    { type: 'Hostname', address: 'n1' },
    { type: 'InternalIP', address: '192.0.2.1' },
  ];
  const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } };
  assert.deepEqual(addressOf({ status } as unknown as StoredObject), { host: '192.0.2.1', port: 10_250 });
  assert.equal(addressOf({ status: { addresses } } as unknown as StoredObject), undefined);
});
