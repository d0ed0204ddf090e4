import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { type ObservedContainer, type ObservedPod, podUid } from '../pods/index.ts';
import { podSubjects } from './pod-subjects.ts';

const uid = podUid('u1');
const pod = aPod({ metadata: { uid }, status: { startTime: '2026-01-01T00:00:00Z' } });

function container(id: string, name: string, state: ObservedContainer['state'], sandboxId = 's2') {
  return { id, name, state, sandboxId, image: 'x', createdAtNs: 5_000_000n } as ObservedContainer;
}

function sandbox(id: string, state: 'ready' | 'not-ready', network: 'pod' | 'node' = 'pod') {
  return { id, state, network, createdAtNs: 1_000_000n } as ObservedPod['sandboxes'][number];
}

const observed: ObservedPod = {
  uid,
  name: 'web',
  namespace: 'default',
  ips: [],
  sandboxes: [sandbox('s3', 'not-ready'), sandbox('s2', 'ready'), sandbox('s1', 'not-ready')],
  containers: [
    container('c3', 'main', 'running'),
    container('c2', 'main', 'running'),
    container('c1', 'setup', 'exited'),
    container('d1', 'side', 'running'),
  ],
};

const known = () => pod;
const cgroupOf = () => '/kubepods/podu1';

test('lists the ready sandbox of a recreated pod and the newest running instance of each container', () => {
  const [found] = podSubjects([observed], known, cgroupOf);
  assert.equal(found?.sandbox?.id, 's2');
  assert.deepEqual(
    found?.containers.map(({ id, createdAtMs }) => [id, createdAtMs]),
    [
      ['c3', 5],
      ['d1', 5],
    ],
  );
  assert.deepEqual(
    [found?.cgroup, found?.startTime, found?.network],
    ['/kubepods/podu1', '2026-01-01T00:00:00Z', 'pod'],
  );
});

test('omits pods without running containers, and returns an empty cgroup for a running pod that is not desired', () => {
  const ended = { ...observed, containers: [container('c1', 'main', 'exited')] };
  assert.deepEqual(podSubjects([ended], known, cgroupOf), []);
  const [stranger] = podSubjects([observed], () => undefined, cgroupOf);
  assert.deepEqual([stranger?.cgroup, stranger?.startTime, stranger?.name], ['', undefined, 'web']);
});
