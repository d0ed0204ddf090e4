import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { CriClient } from '../../src/cri/index.ts';
import { images, type PodSketch } from '../simulation/sketch.ts';
import { manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

const mirror = 'etcd-node';

it('a mirror pod deleted by force is recreated within two seconds with the current status of its static pod', async () => {
  await using node = await RaceNode.start({ cluster: 'joined' });
  const phase = () => node.cluster.pod(mirror)?.status?.['phase'];
  const uid = await node.runsStatic('etcd', manifest('etcd'));
  await node.until('the mirror shows that it runs', () => phase() === 'Running');
  // Deletes the mirror pod shortly after a periodic sync of all statuses, so that the next periodic
  // sync comes too late to be what recreates the mirror pod.
  await node.pass(60_500);
  const before = node.cluster.pod(mirror)?.metadata.uid;
  node.cluster.delete(mirror, 0);
  await node.until('it is mirrored again', () => node.cluster.pod(mirror) !== undefined, 2_000);
  assert.notEqual(node.cluster.pod(mirror)?.metadata.uid, before);
  await node.until('the new mirror shows it too', () => phase() === 'Running', 2_000);
  assert.deepEqual(node.running(uid), ['app']);
});

it('a mirror pod deleted while the kubelet was down is recreated with the current status soon after the start', async () => {
  await using node = await RaceNode.start({ cluster: 'joined' });
  const phase = () => node.cluster.pod(mirror)?.status?.['phase'];
  const uid = await node.runsStatic('etcd', manifest('etcd'));
  await node.until('the mirror shows that it runs', () => phase() === 'Running');
  await node.restartKubelet(() => node.cluster.delete(mirror, 0));
  await node.until('the new mirror shows it too', () => phase() === 'Running', 5_000);
  assert.deepEqual(node.running(uid), ['app']);
});

const web: PodSketch = {
  name: 'web',
  revision: 0,
  source: 'api',
  restartPolicy: 'Always',
  graceSeconds: 2,
  init: [],
  containers: [{ name: 'app', image: images.present }],
};

async function endContainers(cri: CriClient): Promise<void> {
  const { signal } = new AbortController();
  const { containers } = await cri.listContainers({}, signal);
  for (const { id: containerId } of containers) await cri.stopContainer({ containerId, timeout: 0n }, signal);
}

/**
 * A cluster node whose only pod exited while the kubelet was down; the kubelet then starts while
 * the API server is unreachable.
 */
async function startedAlone(copies: 'kept' | undefined) {
  const node = await RaceNode.start({ cluster: 'joined', copies });
  node.cluster.create(web);
  const uid = String(node.cluster.pod('web')?.metadata.uid);
  await node.runs(uid);
  await node.pass(30_000);
  await node.restartKubelet(async () => {
    node.cluster.api.goAway();
    const ended = endContainers(node.behindTheBack());
    await node.pass(5_000);
    await ended;
  });
  return { node, uid };
}

it('a kubelet that starts without its API server starts pods from cached copies, and deletes them later as the API requests', async () => {
  const { node, uid } = await startedAlone('kept');
  await using _node = node;
  assert.deepEqual(node.running(uid), []);
  await node.runs(uid, 60_000);
  assert.equal(node.kubelet.state.config.isReady('api'), false);
  node.cluster.api.comeBack();
  await node.until('the API is heard', () => node.kubelet.state.config.isReady('api'));
  await node.pass(30_000);
  assert.deepEqual(node.running(uid), ['app']);
  node.cluster.delete('web', undefined);
  await node.until('the pod is gone', () => node.cluster.pod('web') === undefined);
  assert.deepEqual(node.running(uid), []);
});

it('a kubelet without cached copies starts API pods only after the API server is reachable', async () => {
  const { node, uid } = await startedAlone(undefined);
  await using _node = node;
  await node.pass(120_000);
  assert.deepEqual(node.running(uid), []);
  node.cluster.api.comeBack();
  await node.runs(uid);
});
