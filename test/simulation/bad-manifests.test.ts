import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { badManifests, usedAllTheSame } from '../fakes/bad-manifests.ts';
import { manifestDirectory, manifestPath } from './manifests.ts';
import { prepareSimulation } from './simulate.ts';
import { images, type PodSketch } from './sketch.ts';
import { World } from './world.ts';

const good: PodSketch = {
  name: 'good',
  revision: 1,
  restartPolicy: 'Always',
  graceSeconds: 1,
  init: [],
  containers: [{ name: 'main', image: images.present }],
};
const manifests = badManifests(images.present);
let world: World;

before(async () => {
  await prepareSimulation();
  const fail = (_method: string, error: unknown) => assert.fail(String(error));
  world = new World(
    { seed: 1, logs: 'kept' },
    {
      entry() {},
      calling() {},
      kubeletStarted() {},
      kubeletGone() {},
      kubeletEnded: (error) => fail('', error),
      bug: fail,
    },
  );
  world.write(good);
  await world.startKubelet();
  await world.clock.advance(5_000);
});

after(async () => {
  await world.stopKubelet();
});

function toldOf(file: string): readonly string[] {
  const path = `${manifestDirectory}/${file}`;
  const entries = world.life?.kubelet.state.node.story().entries ?? [];
  return entries.flatMap(({ message }) => (message.startsWith(path) ? [message.slice(path.length)] : []));
}

function runningPods(): readonly string[] {
  return world.runtime
    .sandboxes()
    .flatMap(({ podName, running }) => (running ? [podName.replace(/-node$/, '')] : []))
    .toSorted();
}

it('reports each invalid manifest once, as a Node event and in the log, and runs the other pods', async () => {
  const [before] = world.runtime.runningContainers();
  for (const { file, content } of manifests) world.manifests.write(`${manifestDirectory}/${file}`, content);
  // Many relists: a reported problem must not be reported again at each one.
  await world.clock.advance(120_000);
  for (const { file, told } of manifests.filter(({ file }) => file !== 'first.yaml')) {
    const lines = toldOf(file);
    assert.equal(lines.length, 1, `${file}: ${lines.join(' | ')}`);
    assert.match(lines[0] ?? '', told, file);
    const logged = [...(world.logs?.records ?? [])].filter(({ message }) =>
      message.startsWith(`${manifestDirectory}/${file}:`),
    );
    assert.equal(logged.length, 1, file);
  }
  assert.deepEqual(toldOf('first.yaml'), []);
  assert.deepEqual(runningPods(), ['good', ...usedAllTheSame].toSorted());
  assert.ok(world.runtime.runningContainers().some(({ id }) => id === before?.id));
});

it('reports a manifest problem again when it changes to a different one', async () => {
  world.manifests.write(manifestPath('kind'), 'apiVersion: v1\nkind: Node\n');
  await world.clock.advance(60_000);
  assert.deepEqual(toldOf('kind.yaml').slice(1), [':2:1: kind: must be Pod: current value is "Node"']);
});

it('reports once that a manifest problem is resolved', async () => {
  for (const { file } of manifests) world.manifests.remove(`${manifestDirectory}/${file}`);
  await world.clock.advance(60_000);
  for (const { file } of manifests.filter(({ file }) => file !== 'first.yaml'))
    assert.equal(toldOf(file).filter((line) => line === ' has no problem any more').length, 1, file);
  assert.deepEqual(runningPods(), ['good']);
});
