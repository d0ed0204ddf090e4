import assert from 'node:assert/strict';
import { it } from 'node:test';
import { images } from '../simulation/sketch.ts';
import { apiPod, manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

const stubborn = { graceSeconds: 20, onTerm: 'ignore' } as const;

/** Edits a pod 300 times; returns its first and last UID and the UIDs of the started sandboxes. */
async function editOften(node: RaceNode, everyMs: number) {
  const first = await node.runsStatic('web', manifest('web', stubborn));
  for (let revision = 1; revision <= 300; revision++) {
    node.write('web', manifest('web', { ...stubborn, revision }));
    await node.pass(everyMs);
  }
  await node.pass(500);
  const last = await node.uidOf('web');
  await node.runs(last, 45_000);
  const started = node.happened.flatMap((each) => (each.kind === 'sandbox-started' ? [each.podUid] : []));
  return { first, last, started };
}

it('300 edits in 30s during a 20s grace: only the pods of the first and the last version of the manifest start, one after the other', async () => {
  await using quick = await RaceNode.start();
  const inGrace = await editOften(quick, 60);
  assert.deepEqual(inGrace.started, [inGrace.first, inGrace.last]);

  // Here the edits last longer than the grace period of the first pod: when it has terminated, the
  // pod of the most recent edit starts, and it must terminate before the pod of the last edit may
  // start.
  await using slow = await RaceNode.start();
  const { first, last, started } = await editOften(slow, 100);
  assert.deepEqual([started.at(0), started.at(-1), started.length], [first, last, 3]);
  await slow.pass(5_000);
  assert.deepEqual(slow.kubelet.control.workers.sizes, { pods: 1, names: 1, loops: 0 });
  assert.ok(await slow.isClean(last));
});

it('rm + identical recreate in grace: the pod runs again with the same UID and restartCount 1', async () => {
  await using node = await RaceNode.start();
  const text = manifest('web', { ...stubborn, graceSeconds: 5 });
  const uid = await node.runsStatic('web', text);
  node.remove('web');
  await node.pass(2_000);
  assert.ok(node.kubelet.control.workers.queries.isPodTerminationRequested(uid));
  node.write('web', text);
  await node.until('it has ended', () => node.running(uid).length === 0, 6_000);
  await node.runs(uid, 5_000);
  assert.equal(await node.uidOf('web'), uid);
  await node.until('it is shown', () => node.phase(uid) === 'Running' && node.restartCount(uid) === 1);
});

it('fixed `metadata.uid`, image edited: the pod is updated in place', async () => {
  await using node = await RaceNode.start();
  const fixed = { metadata: { uid: apiPod('web', 'fixed-uid').metadata.uid } };
  const uid = await node.runsStatic('web', manifest('web', fixed));
  assert.equal(uid, 'fixed-uid');
  node.write('web', manifest('web', { ...fixed, image: images.pulled }));
  await node.until('it runs anew', () => node.of(uid, 'container-started').length === 2);
  await node.pass(1_000);
  assert.equal(node.of(uid, 'sandbox-started').length, 1);
  assert.equal(node.restartCount(uid), 1);
  const [status] = node.kubelet.state.statuses.getPodStatus(uid)?.containerStatuses ?? [];
  assert.equal(status?.image, images.pulled);
  assert.equal(node.kubelet.control.workers.sizes.pods, 1);
});

it('static pod killed while waiting for its name: it finishes without a runtime call', async () => {
  await using node = await RaceNode.start();
  const first = await node.runsStatic('web', manifest('web', stubborn));
  node.write('web', manifest('web', { ...stubborn, revision: 1 }));
  await node.pass(1_000);
  const second = await node.uidOf('web');
  assert.notEqual(second, first);
  assert.ok(
    node.kubelet.state.flights
      .find(second)
      .some(({ entries }) => entries.some((each) => 'outcome' in each && each.outcome === 'waiting')),
  );
  node.remove('web');
  await node.pass(200);
  assert.ok(node.kubelet.control.workers.queries.shouldPodBeFinished(second));
  assert.deepEqual(node.running(first), ['app']);
  await node.becomesClean(30_000);
  assert.deepEqual(node.of(second), []);
  const requested = node.calls.filter(({ request }) => JSON.stringify(request, plain).includes(second));
  assert.deepEqual(requested, []);
});

it('same full name from file and http: the second pod waits, then starts', async () => {
  const response = { status: 200, body: Buffer.from(manifest('web')) };
  await using node = await RaceNode.start({
    settings: { staticPodUrl: 'http://config.example/pods', httpCheckMs: 5_000 },
    machine: { httpGet: async () => response },
  });
  await node.pass(1_000);
  const fromUrl = await node.uidOf('web');
  await node.runs(fromUrl);
  node.write('web', manifest('web', { revision: 7 }));
  await node.until('both are wanted', () => node.kubelet.state.pods.getPods().length === 2);
  const fromFile =
    node.kubelet.state.pods
      .getPods()
      .map(({ metadata }) => metadata.uid)
      .find((uid) => uid !== fromUrl) ?? '';
  await node.pass(60_000);
  assert.deepEqual(node.of(fromFile), []);
  assert.deepEqual(node.running(fromUrl), ['app']);
  response.body = Buffer.from('{"apiVersion": "v1", "kind": "PodList", "items": []}');
  await node.runs(fromFile, 15_000);
  assert.deepEqual(node.running(fromUrl), []);
  await node.becomesClean(10_000, fromFile);
});

it('static removed while api unseen: the static pod terminates, and starts again when its manifest is added again', async () => {
  await using node = await RaceNode.start({ settings: { apiPods: 'expected' } });
  const uid = await node.runsStatic('web', manifest('web'));
  node.remove('web');
  await node.becomesClean(15_000);
  assert.equal(await node.runsStatic('web', manifest('web')), uid);
  await node.api(apiPod('db', 'uid-db'));
  await node.runs('uid-db');
  await node.pass(2_000);

  // A restarted kubelet has the source of each pod in its checkpoints, so it needs to wait only for
  // that source.
  await node.restartKubelet(() => node.remove('web'));
  await node.becomesClean(20_000, 'uid-db');
  await node.pass(60_000);
  assert.deepEqual(node.running('uid-db'), ['app']);
  assert.equal(node.of('uid-db', 'container-started', 'container-exited').length, 1);
  await node.api();
  await node.becomesClean(20_000);
});

/** Converts big integers to text for JSON. */
function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
