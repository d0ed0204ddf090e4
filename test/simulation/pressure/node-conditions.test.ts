import assert from 'node:assert/strict';
import { before, it } from 'node:test';
import { apiResources } from '../../../src/api/index.ts';
import type { NodeCondition, PodStatus } from '../../../src/kinds/index.ts';
import { seededRandom } from '../../../src/lib/index.ts';
import { prepareSimulation } from '../simulate.ts';
import { images, type PodSketch } from '../sketch.ts';
import { type Witness, World } from '../world.ts';

before(prepareSimulation);

const witness: Witness = {
  entry() {},
  calling() {},
  kubeletStarted() {},
  kubeletGone() {},
  kubeletEnded: (error) => assert.fail(String(error)),
  bug: (method, error) => assert.fail(`${method}: ${error}`),
};

function sketch(name: string, more: Partial<PodSketch> = {}): PodSketch {
  return {
    name,
    revision: 1,
    source: 'api',
    restartPolicy: 'Always',
    graceSeconds: 5,
    init: [],
    containers: [{ name: 'c0', image: images.present, onTerm: 'die' }],
    ...more,
  };
}

it('the Node reports its pressure conditions, rejects pods under pressure, and admits pods again after the transition period', async () => {
  const random = seededRandom(1);
  const environment = new World({ seed: 1, pressure: 'some', cluster: { random, skewMs: 0 } }, witness);
  const cluster = environment.cluster ?? assert.fail();
  const status = (name: string) => (cluster.pod(name)?.status ?? {}) as PodStatus;
  const pressures = () => {
    const { conditions = [] } = (cluster.theNode()?.status ?? {}) as {
      readonly conditions?: readonly NodeCondition[];
    };
    return conditions
      .filter(({ type, status: is }) => type.endsWith('Pressure') && is === 'True')
      .map(({ type, reason }) => `${type} ${reason}`);
  };
  const until = async (what: string, holds: () => boolean, limitMs = 60_000) =>
    assert.ok(await environment.clock.advanceUntil(holds, limitMs), what);
  await environment.startKubelet();
  for (const name of ['a', 'b']) cluster.create(sketch(name));
  await until('they run', () => ['a', 'b'].every((name) => status(name).phase === 'Running'));
  assert.deepEqual(pressures(), []);
  for (const [resource, told] of [
    ['memory', 'MemoryPressure KubeletHasInsufficientMemory'],
    ['disk', 'DiskPressure KubeletHasDiskPressure'],
    ['pids', 'PIDPressure KubeletHasInsufficientPID'],
  ] as const) {
    environment.pressure?.take({ resource, room: 0 });
    await until(told, () => pressures().includes(told));
  }
  await until('all pods are evicted', () => ['a', 'b'].every((name) => status(name).phase === 'Failed'));
  assert.equal(status('a').reason, 'Evicted');
  assert.match(status('a').message ?? '', /^The node was low on resource: /);
  const target = status('a').conditions?.find(({ type }) => type === 'DisruptionTarget');
  assert.equal(target?.reason, 'TerminationByKubelet');
  const reported = cluster.api
    .objects(apiResources.events)
    .find(
      ({ metadata, ...event }) => (event as { reason?: string }).reason === 'Evicted' && metadata.annotations,
    );
  assert.ok(Object.hasOwn(reported?.metadata.annotations ?? {}, 'starved_resource'));
  cluster.create(sketch('late'));
  cluster.create(sketch('vital', { priority: 2_000_000_000 }));
  await until('one pod is rejected', () => status('late').phase === 'Failed');
  const { reason, message } = status('late');
  const all = 'MemoryPressure DiskPressure PIDPressure';
  assert.deepEqual([reason, message], ['Evicted', `Pod was rejected: The node had condition: [${all}]. `]);
  await until('a critical pod runs', () => status('vital').phase === 'Running');
  environment.pressure?.heal();
  await until('the node has no pressure condition', () => pressures().length === 0);
  cluster.create(sketch('again'));
  await until('the node admits pods', () => status('again').phase === 'Running');
  assert.equal(status('vital').phase, 'Running');
  assert.equal(await environment.stopKubelet(), undefined);
  cluster.api.close();
  environment.runtime.close();
});

it('a pod rejected because of memory pressure is not evicted in place of the pod that uses the memory', async () => {
  const random = seededRandom(1);
  const environment = new World({ seed: 1, pressure: 'some', cluster: { random, skewMs: 0 } }, witness);
  const cluster = environment.cluster ?? assert.fail();
  const status = (name: string) => (cluster.pod(name)?.status ?? {}) as PodStatus;
  const until = async (what: string, holds: () => boolean, limitMs = 60_000) =>
    assert.ok(await environment.clock.advanceUntil(holds, limitMs), what);
  await environment.startKubelet();
  cluster.create(sketch('hog'));
  await until('it runs', () => status('hog').phase === 'Running');
  environment.pressure?.take({ resource: 'memory', room: 1_000 });
  const { available = 0 } = (await environment.pressure?.node())?.memory ?? {};
  // This amount is below the soft threshold, which takes effect only after its grace period.
  environment.pressure?.take({ resource: 'memory', room: 1_200 - available });
  await environment.clock.advance(11_000);
  const late = Array.from({ length: 8 }, (_, index) => `late-${index}`);
  for (const name of late) cluster.create(sketch(name));
  await until('some pods are rejected', () => late.some((name) => status(name).phase === 'Failed'));
  assert.ok(late.some((name) => status(name).phase === undefined || status(name).phase === 'Pending'));
  await until('the pod that uses the memory is evicted', () => status('hog').phase === 'Failed');
  await environment.clock.advance(30_000);
  for (const name of late) assert.doesNotMatch(status(name).message ?? '', /The node was low/, name);
  assert.equal(await environment.stopKubelet(), undefined);
  cluster.api.close();
  environment.runtime.close();
});
