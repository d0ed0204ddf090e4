import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodUid } from '../../src/pods/index.ts';
import { apiPod, manifest, mirrorOf } from './pods.ts';
import { RaceNode } from './race-node.ts';

const deletion = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 5 };

it('restart with many Succeeded pods: no pod is rejected for lack of capacity', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected', maxPods: 5 } });
  // The succeeded pods are older than the running ones, so they are admitted first.
  const meta = (hour: number, number: number) => ({
    metadata: { creationTimestamp: `2025-12-31T0${hour}:00:${10 + number}Z` },
  });
  const ended = Array.from({ length: 30 }, (_, number) =>
    apiPod(`job${number}`, `uid-job${number}`, { ...meta(1, number), status: { phase: 'Succeeded' } }),
  );
  const running = Array.from({ length: 5 }, (_, number) =>
    apiPod(`web${number}`, `uid-web${number}`, meta(2, number)),
  );
  await node.api(...running, ...ended);
  for (const { metadata } of running) await node.runs(metadata.uid);
  await node.pass(5_000);
  await node.restartKubelet();
  await node.api(...running, ...ended);
  await node.pass(120_000);
  for (const { metadata } of [...running, ...ended]) {
    assert.deepEqual(
      node.events(metadata.uid).filter((reason) => reason.startsWith('OutOf')),
      [],
    );
  }
  for (const { metadata } of running) {
    assert.equal(node.of(metadata.uid, 'container-started', 'container-exited').length, 1);
    assert.equal(node.phase(metadata.uid), 'Running');
  }
  for (const { metadata } of ended) assert.equal(node.phase(metadata.uid), 'Succeeded');
  assert.deepEqual(
    ended.flatMap(({ metadata }) => node.of(metadata.uid)),
    [],
  );
});

it('restart: terminal + deletionTimestamp; inadmissible + deleted: both pods may be deleted from the API', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected', maxPods: 2 } });
  const job = { restartPolicy: 'Never', runMs: 2_000 } as const;
  const keeper = apiPod('web', 'uid-web', { metadata: { creationTimestamp: '2025-12-31T01:00:00Z' } });
  await node.api(keeper, apiPod('job', 'uid-job', job));
  await node.until('the job has ended', () => node.phase('uid-job' as PodUid) === 'Succeeded');
  await node.pass(5_000);
  await node.restartKubelet();
  const ended = apiPod('job', 'uid-job', { ...job, metadata: deletion, status: { phase: 'Succeeded' } });
  const second = apiPod('more', 'uid-more', { metadata: { creationTimestamp: '2025-12-31T02:00:00Z' } });
  const refused = apiPod('late', 'uid-late', {
    metadata: { creationTimestamp: '2025-12-31T03:00:00Z', ...deletion },
  });
  const refusedFirst = apiPod('soon', 'uid-soon', {
    metadata: { creationTimestamp: '2025-12-31T04:00:00Z' },
  });
  await node.api(keeper, ended, second, refused, refusedFirst);
  const { statuses } = node.kubelet.state;
  // A finished pod here is one that the status manager would delete from the API.
  const isOver = (uid: string) => statuses.isFinished(uid as PodUid);
  await node.until('both may go', () => isOver('uid-job') && isOver('uid-late'), 10_000);
  assert.ok(node.events('uid-late').includes('OutOfpods'));
  assert.equal(node.phase('uid-late' as PodUid), 'Failed');
  assert.equal(node.phase('uid-job' as PodUid), 'Succeeded');
  // A pod that is rejected before its deletion is requested must become deletable from the API as
  // well.
  await node.until('it was refused', () => node.events('uid-soon').includes('OutOfpods'));
  const deletedLater = { ...refusedFirst, metadata: { ...refusedFirst.metadata, ...deletion } };
  await node.api(keeper, ended, second, refused, deletedLater);
  await node.until('it may go', () => isOver('uid-soon'), 10_000);
  await node.api(keeper, second);
  await node.becomesClean(20_000, 'uid-web', 'uid-more');
  assert.deepEqual([node.of('uid-late'), node.of('uid-soon')], [[], []]);
  assert.equal(node.of('uid-web', 'container-started').length, 1);
});

it('force-deleted while kubelet down: containers and mirror pod are removed', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected' } });
  await node.api();
  const uid = await node.runsStatic('etcd', manifest('etcd'));
  const etcd = node.podOf('etcd');
  assert.ok(etcd !== undefined);
  const mirror = mirrorOf(etcd, 'uid-mirror');
  const volumes = { spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } };
  const [gone, stays] = [apiPod('gone', 'uid-gone', volumes), apiPod('stays', 'uid-stays')];
  await node.api(gone, stays, mirror);
  await node.runs('uid-gone');
  await node.runs('uid-stays');
  await node.pass(2_000);
  await node.restartKubelet(() => node.remove('etcd'));
  await node.pass(5_000);
  // The kubelet cannot know that its API pod was deleted until the API source is ready.
  assert.deepEqual(node.running('uid-gone'), ['app']);
  await node.api(stays, mirror);
  await node.becomesClean(30_000, 'uid-stays');
  assert.deepEqual([node.running('uid-gone'), node.running(uid)], [[], []]);
  const { pods } = node.kubelet.state;
  assert.deepEqual(pods.getPodsAndMirrorPods().orphanedMirrors, ['etcd-node_default']);
  await node.api(stays);
  await node.pass(2_000);
  assert.deepEqual(pods.getPodsAndMirrorPods().orphanedMirrors, []);
  assert.equal(node.of('uid-stays', 'container-started', 'container-exited').length, 1);
});

it('an ephemeral container created when the kubelet was killed is started once by the next kubelet', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected' } });
  const pod = apiPod('web', 'uid-web');
  node.api(pod);
  await node.runs('uid-web');
  await node.pass(2_000);
  const created = Promise.withResolvers<void>();
  const isMade = ({ method }: { readonly method: string }) => method === 'createContainer';
  node.toll = {
    after: (call) => {
      if (!isMade(call)) return undefined;
      created.resolve();
      return new Promise(() => {});
    },
  };
  const debug = { ...pod.spec.containers[0], name: 'debug' };
  const debugged = { ...pod, spec: { ...pod.spec, ephemeralContainers: [debug] } };
  node.api(debugged);
  await node.settled(created.promise);
  node.toll = {};
  await node.restartKubelet();
  node.api(debugged);
  await node.until('it runs', () => node.running('uid-web').includes('debug'), 20_000);
  await node.pass(60_000);
  assert.equal(node.of('uid-web', 'container-started').length, 2);
});
