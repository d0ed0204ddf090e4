import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manifestDirectory } from '../simulation/manifests.ts';
import { manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

function story(node: RaceNode, key: string): readonly string[] {
  return node.kubelet.state.flights.find(key).flatMap(({ entries }) => entries.map(({ message }) => message));
}

it('the story of a pod says no more than was checked, and where its sandbox is', async () => {
  await using node = await RaceNode.start();
  await node.runsStatic('own', manifest('own'));
  await node.runsStatic('shared', manifest('shared', { spec: { hostNetwork: true } }));
  assert.ok(story(node, 'own').includes('admitted by the node'));
  assert.ok(story(node, 'own').some((message) => /^Sandbox is ready at \d+\./.test(message)));
  assert.ok(story(node, 'shared').includes("Sandbox is ready on the node's network"));
});

it('a pod with a volume that cannot be had does not start, says why, and starts once it can', async () => {
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

it('the directory of manifests being gone is an event of the node, and a note when it is back', async () => {
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

it('who asks for a pod hears of the problems of its own manifest', async () => {
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
