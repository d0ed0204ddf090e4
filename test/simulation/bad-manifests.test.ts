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
let environment: World;

before(async () => {
  await prepareSimulation();
  const fail = (_method: string, error: unknown) => assert.fail(String(error));
  environment = new World(
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
  environment.write(good);
  await environment.startKubelet();
  await environment.clock.advance(5_000);
});

after(async () => {
  await environment.stopKubelet();
});

function toldOf(file: string): readonly string[] {
  const path = `${manifestDirectory}/${file}`;
  const entries = environment.life?.kubelet.state.node.story().entries ?? [];
  return entries.flatMap(({ message }) => (message.startsWith(path) ? [message.slice(path.length)] : []));
}

function runningPods(): readonly string[] {
  return environment.runtime
    .sandboxes()
    .flatMap(({ podName, running }) => (running ? [podName.replace(/-node$/, '')] : []))
    .toSorted();
}

it('reports each invalid manifest once, as a Node event and in the log, and runs the other pods', async () => {
  const [before] = environment.runtime.runningContainers();
  for (const { file, content } of manifests)
    environment.manifests.write(`${manifestDirectory}/${file}`, content);
  // Enough time for many relists, none of which may report the problem again.
  await environment.clock.advance(120_000);
  for (const { file, told } of manifests.filter(({ file }) => file !== 'first.yaml')) {
    const lines = toldOf(file);
    assert.equal(lines.length, 1, `${file}: ${lines.join(' | ')}`);
    assert.match(lines[0] ?? '', told, file);
    const logged = [...(environment.logs?.records ?? [])].filter(({ message }) =>
      message.startsWith(`${manifestDirectory}/${file}:`),
    );
    assert.equal(logged.length, 1, file);
  }
  assert.deepEqual(toldOf('first.yaml'), []);
  assert.deepEqual(runningPods(), ['good', ...usedAllTheSame].toSorted());
  assert.ok(environment.runtime.runningContainers().some(({ id }) => id === before?.id));
});

it('reports a manifest problem again when it changes to a different one', async () => {
  environment.manifests.write(manifestPath('kind'), 'apiVersion: v1\nkind: Node\n');
  await environment.clock.advance(60_000);
  assert.deepEqual(toldOf('kind.yaml').slice(1), [':2:1: kind: must be Pod: current value is "Node"']);
});

it('reports once that a manifest problem is resolved', async () => {
  for (const { file } of manifests) environment.manifests.remove(`${manifestDirectory}/${file}`);
  await environment.clock.advance(60_000);
  for (const { file } of manifests.filter(({ file }) => file !== 'first.yaml'))
    assert.equal(toldOf(file).filter((line) => line === ' has no problem any more').length, 1, file);
  assert.deepEqual(runningPods(), ['good']);
});
