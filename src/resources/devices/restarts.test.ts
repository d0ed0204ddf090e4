import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  checkpointPath,
  container,
  DeviceRig,
  gadget,
  podOf,
  signal,
} from '../../../test/fakes/device-rig.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { initContainersOf, isSidecar, type Pod, podUid } from '../../pods/index.ts';

const three = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
const unexpected = (why: string) => `Allocate failed due to ${why}, which is unexpected`;

describe('device allocations after a restart of the kubelet', () => {
  it('after a restart, containers keep their devices and no other pod gets them', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    const pod = podOf('one', 2);
    await harness.admit(pod);
    await harness.start();
    assert.equal(await harness.admit(pod), undefined);
    const grants = await harness.pass(harness.manager.grants(pod, container('main', 2), signal));
    assert.deepEqual(grants?.annotations, { [gadget]: 'a,b' });
    const next = podOf('next', 1);
    await harness.admit(next);
    assert.deepEqual([harness.devicesOf(pod), harness.devicesOf(next)], [['a', 'b'], ['c']]);
  });

  it('after a restart, a restored resource has zero devices until its plugin registers, and pods wait a limited time for it', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, three);
    const pod = podOf('one', 1);
    await harness.admit(pod);
    plugin.die();
    await harness.start();
    assert.deepEqual(harness.manager.amounts(), {
      capacity: { [gadget]: '0' },
      allocatable: { [gadget]: '0' },
      removed: [],
    });
    let isReady = false;
    const ready = harness.manager.ready(pod, signal).then(() => {
      isReady = true;
    });
    await harness.clock.advance(20_000);
    assert.equal(isReady, false);
    plugin.comeBack();
    await harness.pass(harness.host.register(plugin));
    await harness.clock.advance(10);
    await ready;
    assert.equal(await harness.admit(pod), undefined);
    assert.deepEqual(harness.devicesOf(pod), ['a']);
  });

  it('after a restart, a pod is rejected if the plugin of its devices does not register in time, unless its container is running or has finished', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, three);
    const [pod, served] = [podOf('one', 1), podOf('served', 1)];
    await harness.admit(pod);
    await harness.admit(served);
    plugin.die();
    await harness.start();
    harness.served.add('served main');
    await harness.pass(harness.manager.ready(served, signal));
    assert.equal(await harness.admit(served), undefined);
    const ready = harness.manager.ready(pod, signal);
    await harness.clock.advance(45_000);
    await ready;
    assert.equal(
      await harness.admit(pod),
      unexpected(`no healthy devices present; cannot allocate unhealthy devices ${gadget}`),
    );
    await harness.clock.advance(300_000);
    assert.equal(
      await harness.admit(podOf('late', 1)),
      unexpected(`cannot allocate unregistered device ${gadget}`),
    );
  });

  it('after a restart, a container is rejected if its devices are unhealthy or its request has changed', async () => {
    await using harness = new DeviceRig();
    const plugin = await harness.startWith(gadget, three);
    const pod = podOf('one', 1);
    await harness.admit(pod);
    plugin.devices = [{ id: 'a', health: 'Unhealthy' }, { id: 'b' }];
    await harness.start();
    assert.equal(
      await harness.admit(pod),
      unexpected(
        `previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${gadget}`,
      ),
    );
    harness.ended.clear();
    assert.equal(
      await harness.admit(podOf('one', 2)),
      unexpected(`pod "one" container "main" changed request for resource "${gadget}" from 1 to 2`),
    );
  });

  it('after a restart, a damaged checkpoint is ignored and logged', async () => {
    await using harness = new DeviceRig();
    await harness.startWith(gadget, three);
    await harness.admit(podOf('one', 1));
    const text = harness.store.read(checkpointPath) ?? '';
    harness.store.write(checkpointPath, text.replace('"a"', '"b"'));
    await harness.start();
    assert.equal(harness.manager.size, 0);
    assert.equal(harness.manager.hasCheckpoint, true);
    assert.match(
      JSON.stringify(harness.logs.records.toArray()),
      /the checksum of the checkpoint is \d+ and should be \d+/,
    );
  });
});

type Step =
  | { readonly do: 'admit'; readonly pod: number }
  | { readonly do: 'end'; readonly pod: number }
  | { readonly do: 'start'; readonly pod: number }
  | { readonly do: 'tell'; readonly well: readonly boolean[] }
  | { readonly do: 'die' }
  | { readonly do: 'return' }
  | { readonly do: 'restart' }
  | { readonly do: 'fail'; readonly times: 'once' };

const ids = ['a', 'b', 'c', 'd', 'e'];
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('admit' as const), pod: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), pod: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('start' as const), pod: fc.nat(5) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('tell' as const),
      well: fc.array(fc.boolean(), { minLength: ids.length, maxLength: ids.length }),
    }),
  },
  fc.constant({ do: 'die' as const }),
  fc.constant({ do: 'return' as const }),
  fc.constant({ do: 'restart' as const }),
  fc.constant({ do: 'fail' as const, times: 'once' as const }),
);
const shape = fc.record({
  init: fc.nat(3),
  side: fc.nat(2),
  main: fc.nat(3),
});

function shaped(name: string, { init, side, main }: { init: number; side: number; main: number }): Pod {
  return aPod({
    metadata: { uid: podUid(name), name },
    spec: {
      initContainers: [container('init', init), container('side', side, { restartPolicy: 'Always' })],
      containers: [container('main', main)],
    },
  });
}

/** Containers that run concurrently, and different pods, must share no device. */
function assertOneOwner(harness: DeviceRig, pods: readonly Pod[]): void {
  const ofPods = new Map<string, string>();
  const ofContainers = new Map<string, string>();
  const own = (owners: Map<string, string>, id: string, owner: string) => {
    assert.equal(owners.get(id) ?? owner, owner, `${id} is allocated twice`);
    owners.set(id, owner);
  };
  for (const pod of pods) {
    const { name } = pod.metadata;
    for (const one of [...initContainersOf(pod), ...pod.spec.containers])
      for (const id of harness.devicesOf(pod, one.name)) {
        own(ofPods, id, name);
        // Containers that exit before the others start may share their devices.
        const ends = initContainersOf(pod).includes(one) && !isSidecar(one);
        if (!ends) own(ofContainers, id, `${name}/${one.name}`);
      }
  }
}

describe('device allocations, for any order of events', () => {
  it('for any order of events, no device is allocated twice and no container changes its devices', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(shape, { minLength: 6, maxLength: 6 }),
        fc.array(step, { maxLength: 25 }),
        async (shapes, steps) => {
          await using harness = new DeviceRig();
          const plugin = await harness.startWith(
            gadget,
            ids.map((id) => ({ id })),
          );
          // A pod that has terminated may be created again with another UID.
          const lives = shapes.map(() => 0);
          const podAt = (index: number) =>
            shaped(`p${index}-${lives[index]}`, shapes[index] ?? { init: 0, side: 0, main: 0 });
          const had = new Map<string, string>();
          const admitted = new Map<number, Pod>();
          const check = () => {
            assertOneOwner(harness, [...admitted.values()]);
            for (const pod of admitted.values())
              for (const { name } of [...initContainersOf(pod), ...pod.spec.containers]) {
                const key = `${pod.metadata.uid} ${name}`;
                const devices = harness.devicesOf(pod, name).join();
                assert.equal(had.get(key) ?? devices, devices, key);
                had.set(key, devices);
              }
          };
          for (const one of steps) {
            switch (one.do) {
              case 'admit': {
                if (admitted.has(one.pod)) break;
                const pod = podAt(one.pod);
                if ((await harness.admit(pod)) === undefined) admitted.set(one.pod, pod);
                else lives[one.pod] = (lives[one.pod] ?? 0) + 1;
                break;
              }
              case 'end': {
                const pod = admitted.get(one.pod);
                if (pod === undefined) break;
                harness.ended.add(pod.metadata.uid);
                admitted.delete(one.pod);
                lives[one.pod] = (lives[one.pod] ?? 0) + 1;
                break;
              }
              case 'start': {
                const pod = admitted.get(one.pod);
                const main = pod?.spec.containers[0];
                if (pod === undefined || main === undefined) break;
                await harness.pass(harness.manager.grants(pod, main, signal)).catch(() => {});
                break;
              }
              case 'tell':
                plugin.tell(
                  ids.map((id, index) => ({
                    id,
                    health: one.well[index] === true ? ('Healthy' as const) : ('Unhealthy' as const),
                  })),
                );
                break;
              case 'die':
                plugin.die();
                break;
              case 'return':
                plugin.comeBack();
                await harness.pass(harness.host.register(plugin).catch(() => {}));
                break;
              case 'restart':
                await harness.start();
                break;
              case 'fail':
                plugin.troubles.set('allocate', new Error('no'));
                await harness.admit(shaped('failing', { init: 1, side: 1, main: 1 }));
                plugin.troubles.clear();
            }
            await harness.clock.advance(5);
            check();
          }
        },
      ),
      { numRuns: 150 },
    );
  });
});
