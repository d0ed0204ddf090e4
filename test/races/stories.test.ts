import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manifestDirectory } from '../simulation/manifests.ts';
import { manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

function story(node: RaceNode, key: string): readonly string[] {
  return node.kubelet.state.flights.find(key).flatMap(({ entries }) => entries.map(({ message }) => message));
}

it("the timeline of a pod records its admission, and whether its sandbox has an IP or uses the node's network", async () => {
  await using node = await RaceNode.start();
  await node.runsStatic('own', manifest('own'));
  await node.runsStatic('shared', manifest('shared', { spec: { hostNetwork: true } }));
  assert.ok(story(node, 'own').includes('admitted by the node'));
  assert.ok(story(node, 'own').some((message) => /^Sandbox is ready at \d+\./.test(message)));
  assert.ok(story(node, 'shared').includes("Sandbox is ready on the node's network"));
});

it('a pod with an unavailable volume does not start, reports the reason, and starts when the volume is available', async () => {
  await using node = await RaceNode.start();
  const hostPath = { path: '/data/in', type: 'Directory' };
  node.write('typed', manifest('typed', { spec: { volumes: [{ name: 'in', hostPath }] } }));
  const downwardAPI = { items: [{ path: 'a', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }] };
  node.write('other', manifest('other', { spec: { volumes: [{ name: 'info', downwardAPI }] } }));
  const [typed, other] = [await node.uidOf('typed'), await node.uidOf('other')];
  await node.pass(30_000);
  assert.deepEqual([...node.running(typed), ...node.running(other)], []);
  assert.ok(
    story(node, typed).includes(
      'MountVolume.SetUp failed for volume "in" : hostPath type check failed: /data/in is not a directory',
    ),
  );
  assert.ok(node.events(other).includes('FailedMount'));
  assert.deepEqual(node.of(other), []);
  await node.world.machine.files.makeDirectory('/data/in', 0o755);
  await node.runs(typed, 180_000);
  node.remove('other');
  await node.becomesClean(30_000, typed);
});

it('a missing manifest directory is reported on the node, and its return is recorded', async () => {
  await using node = await RaceNode.start();
  await node.runsStatic('web', manifest('web'));
  node.world.manifests.remove(manifestDirectory);
  await node.becomesClean(60_000);
  node.world.manifests.makeDirectory(manifestDirectory);
  await node.pass(5_000);
  const reported = node.kubelet.state.node
    .story()
    .entries.map(({ message }) => message)
    .filter((message) => message.startsWith(manifestDirectory));
  assert.deepEqual(reported, [
    `${manifestDirectory}: does not exist: its pods are terminated, and no static pods run from it until it exists again`,
    `${manifestDirectory} has no problem any more`,
  ]);
});

it('the problems shown for a pod include those of its own manifest and exclude those of other pods', async () => {
  await using node = await RaceNode.start();
  await node.runsStatic('web', manifest('web'));
  node.write('web', '{');
  node.write('bad', manifest('bad', { image: '' }));
  node.write('nonsense', '[');
  await node.pass(5_000);
  const files = (key: string) =>
    node.kubelet.endpoints.sourceProblemsOf(key).map(({ path }) => path.split('/').at(-1)?.split('.')[0]);
  assert.equal(new Set(node.kubelet.endpoints.sourceProblems().map(({ path }) => path)).size, 3);
  assert.deepEqual([...new Set(files('web'))], ['web']);
  assert.deepEqual([...new Set(files('bad'))].sort(), ['bad', 'nonsense']);
});
