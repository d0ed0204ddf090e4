import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { settings } from './kubelet-life.ts';
import { prepareSimulation } from './simulate.ts';
import { images, type PodSketch } from './sketch.ts';
import { World } from './world.ts';

const sketch = (name: string): PodSketch => ({
  name,
  revision: 1,
  restartPolicy: 'Always',
  graceSeconds: 1,
  init: [],
  containers: [{ name: 'main', image: images.present, onTerm: 'die' }],
});

before(prepareSimulation);

it('a disk that hangs during housekeeping does not delay pods', async () => {
  const fail = (_method: string, error: unknown) => assert.fail(String(error));
  const environment = new World(
    { seed: 1 },
    {
      entry() {},
      calling() {},
      kubeletStarted() {},
      kubeletGone() {},
      kubeletEnded: (e) => fail('', e),
      bug: fail,
    },
  );
  const { files } = environment.machine;
  const names = files.names.bind(files);
  let hangs = false;
  let looks = 0;
  Object.assign(files, {
    names: (directory: string) => {
      if (!hangs || directory !== `${settings.rootDir}/pods`) return names(directory);
      looks++;
      return new Promise(() => {});
    },
  });
  const running = () => environment.runtime.runningContainers().length;
  await environment.startKubelet();
  await environment.clock.advance(10_000);
  hangs = true;
  // Housekeeping runs twice a minute on an idle node, so it starts once in this time.
  await environment.clock.advance(35_000);
  assert.equal(looks, 1);
  environment.write(sketch('one'));
  await environment.clock.advance(1_000);
  assert.equal(running(), 1);
  environment.write(sketch('two'));
  await environment.clock.advance(1_000);
  assert.equal(running(), 2);
  environment.remove('one');
  await environment.clock.advance(3_000);
  assert.equal(running(), 1);
  await environment.clock.advance(120_000);
  assert.equal(looks, 1, 'the disk is not read again while it hangs');
  assert.equal(await environment.stopKubelet(), undefined);
});
