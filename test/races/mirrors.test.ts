import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Pod, type PodUid, podUid } from '../../src/pods/index.ts';
import { apiPod, manifest, mirrorOf } from './pods.ts';
import { RaceNode } from './race-node.ts';

const withApi = { settings: { apiPods: 'expected' } } as const;

/** Starts a node with a running static pod. */
async function withStatic(): Promise<{ readonly node: RaceNode; readonly pod: Pod; readonly uid: PodUid }> {
  const node = await RaceNode.start(withApi);
  await node.api();
  const uid = await node.runsStatic('etcd', manifest('etcd'));
  const pod = node.podOf('etcd');
  assert.ok(pod !== undefined);
  return { node, pod, uid };
}

function translations(node: RaceNode): readonly [mirror: string, pod: string][] {
  return [...node.kubelet.state.pods.getUidTranslations().mirrorToPod];
}

it('mirror deleted, grace 30 and 0; stale mirror event: the mirror pod is recreated once with a new UID, and containers keep running', async () => {
  for (const grace of [30, 0]) {
    const { node: started, pod, uid } = await withStatic();
    await using node = started;
    const before = node.of(uid).length;
    const updates: string[] = [];
    const {
      control: { workers },
      state: { pods },
    } = node.kubelet;
    const update = workers.updatePod.bind(workers);
    workers.updatePod = (options) => {
      if (options.updateType === 'update') updates.push(options.mirrorPod?.metadata.uid ?? 'none');
      update(options);
    };
    const old = mirrorOf(pod, 'mirror-1');
    const deleting = mirrorOf(pod, 'mirror-1', {
      deletionTimestamp: '2026-01-01T00:01:00Z',
      deletionGracePeriodSeconds: grace,
    });
    for (const mirrors of [[old], [deleting], [], [mirrorOf(pod, 'mirror-2')]]) {
      await node.api(...mirrors);
      await node.pass(grace * 1_000 + 500);
    }
    // The pod worker of the static pod gets exactly one update per change of the mirror pod, so
    // that a deleted mirror pod is recreated promptly.
    assert.deepEqual(updates, ['mirror-1', 'mirror-1', 'none', 'mirror-2']);
    // A stale list shows the deleted mirror pod again.
    await node.api(deleting);
    await node.api(mirrorOf(pod, 'mirror-2'));
    await node.pass(60_000);
    assert.deepEqual(translations(node), [['mirror-2', uid]]);
    assert.equal(pods.getUidTranslations().podToMirror.get(uid), 'mirror-2');
    assert.equal(node.of(uid).length, before, 'the pod was touched');
    assert.deepEqual(node.running(uid), ['app']);
    assert.equal(workers.sizes.pods, 1);
    assert.equal(node.kubelet.state.statuses.size, 1);
  }
});

it('mirror before/after its static pod: the UIDs of both are translated into each other', async () => {
  const { node: after, pod, uid } = await withStatic();
  await using node = after;
  const { pods } = node.kubelet.state;
  assert.equal(pods.getUidTranslations().podToMirror.get(uid), '');
  await node.api(mirrorOf(pod, 'mirror-1'));
  await node.pass(500);
  assert.equal(pods.translatePodUid(podUid('mirror-1')), uid);
  assert.equal(pods.getUidTranslations().podToMirror.get(uid), 'mirror-1');
  assert.equal(node.kubelet.control.workers.activePod(uid)?.mirrorPod?.metadata.uid, 'mirror-1');
  assert.equal(node.phase(podUid('mirror-1')), 'Running');

  // A restarted kubelet may receive the mirror pod before the static pod.
  node.world.manifests.fail('/etc/kubeling/manifests', new Error('EIO'));
  await node.restartKubelet();
  await node.api(mirrorOf(pod, 'mirror-1'));
  await node.pass(5_000);
  const again = node.kubelet.state.pods;
  assert.equal(again.translatePodUid(podUid('mirror-1')), 'mirror-1');
  assert.deepEqual(node.kubelet.control.workers.sizes.pods, 0);
  node.world.manifests.fail('/etc/kubeling/manifests', undefined);
  await node.until('the static pod is there', () => again.getPodByUid(uid) !== undefined);
  await node.pass(2_000);
  assert.equal(again.translatePodUid(podUid('mirror-1')), uid);
  assert.equal(again.getUidTranslations().podToMirror.get(uid), 'mirror-1');
  assert.equal(node.kubelet.control.workers.activePod(uid)?.mirrorPod?.metadata.uid, 'mirror-1');
  assert.equal(node.of(uid, 'container-started', 'container-exited').length, 1);

  // The UID of a removed static pod is translated as long as its mirror pod exists.
  node.remove('etcd');
  await node.becomesClean(20_000);
  assert.equal(again.translatePodUid(podUid('mirror-1')), uid);
  await node.api();
  await node.pass(500);
  assert.equal(again.translatePodUid(podUid('mirror-1')), 'mirror-1');
});

it('two API pods, one name, old force-deleted: pods are tracked by UID, and exec and logs use the newest', async () => {
  await using node = await RaceNode.start({
    ...withApi,
    tolerates: ['static pods of one name do not overlap'],
  });
  const stubborn = { graceSeconds: 20, onTerm: 'ignore' } as const;
  await node.api(apiPod('db', 'uid-old', stubborn));
  await node.runs('uid-old');
  await node.pass(1_000);
  await node.api(apiPod('db', 'uid-new', stubborn));
  await node.runs('uid-new', 2_000);
  assert.deepEqual([node.running('uid-old'), node.running('uid-new')], [['app'], ['app']]);
  const {
    control: { workers },
    state: { pods, statuses },
  } = node.kubelet;
  assert.equal(pods.getPodByName('default', 'db')?.metadata.uid, 'uid-new');
  assert.ok(workers.queries.isPodTerminationRequested(podUid('uid-old')));
  assert.ok(!workers.queries.isPodTerminationRequested(podUid('uid-new')));
  assert.equal(workers.sizes.pods, 2);
  await node.until('the old one is gone', () => node.running('uid-old').length === 0, 25_000);
  await node.becomesClean(10_000, 'uid-new');
  assert.equal(pods.getPodByName('default', 'db')?.metadata.uid, 'uid-new');
  assert.equal(statuses.getPodStatus(podUid('uid-new'))?.phase, 'Running');
  assert.equal(node.of('uid-new', 'container-started', 'container-exited').length, 1);
});
