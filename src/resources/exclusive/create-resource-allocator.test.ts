import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DeviceRig, gadget, signal } from '../../../test/fakes/device-rig.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { type SketchedMachine, sysTree, treeFiles } from '../../../test/fakes/sketched-machine.ts';
import { MetricRegistry } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import type { ExclusiveResourceSettings } from './create-resource-allocator.ts';
import { createResourceAllocator } from './create-resource-allocator.ts';

/** A machine with the given number of NUMA nodes with two CPUs each. */
function machineOf(count: number): SketchedMachine {
  const ids = Array.from({ length: count }, (_, id) => id);
  return {
    name: 'wide',
    sockets: count,
    nodes: ids.map((id) => ({
      id,
      memory: 2 ** 30,
      hugePages: [],
      distances: ids.map((other) => (other === id ? 10 : 20)),
      cores: [0, 1].map((core) => ({ id: core, socket: id, threads: [id * 2 + core] })),
    })),
  };
}

const single: NonNullable<ExclusiveResourceSettings['topology']> = {
  policy: 'single-numa-node',
  scope: 'container',
  options: {},
};
const cpu = { reservedCount: 1, reservedCpus: '', options: {}, reconcileMs: 10_000 };

async function open(harness: DeviceRig, settings: ExclusiveResourceSettings, count = 2) {
  const active = new Map<string, Pod>();
  const allocator = await createResourceAllocator(settings, {
    clock: harness.clock,
    logger: harness.logs.logger,
    metrics: new MetricRegistry({ onError: assert.ifError }),
    files: treeFiles(sysTree(machineOf(count))),
    stateFile: () => ({ read: async () => undefined, write: async () => {} }),
    providers: () => [harness.manager],
    activePods: () => [...active.values()],
    mayRun: () => false,
    runningContainers: () => [],
    isAnyEnding: () => false,
    fromRuntime: async () => [],
    update: async () => {},
  });
  const allocate = async (pod: Pod) => {
    active.set(pod.metadata.uid, pod);
    return await harness.pass(allocator.allocatePod(pod, signal));
  };
  return { allocator, allocate };
}

function asking(name: string, cpus: number, devices: number): Pod {
  const list = { cpu: `${cpus}`, memory: '1Mi', [gadget]: `${devices}` };
  const containers = [{ name: 'main', resources: { requests: list, limits: list } }];
  return aPod({ metadata: { uid: podUid(name), name }, spec: { containers } });
}

describe('devices and CPUs of one container', () => {
  it('allocates devices and CPUs of one container on the same NUMA node', async () => {
    await using harness = new DeviceRig();
    harness.numaNodes = [0, 1];
    await harness.startWith(gadget, [
      { id: 'far', numaNodes: [0] },
      { id: 'near', numaNodes: [1] },
    ]);
    const { allocator, allocate } = await open(harness, { cpu, topology: single });
    const pod = asking('one', 2, 1);
    assert.equal(await allocate(pod), undefined);
    assert.deepEqual(harness.devicesOf(pod), ['near'], 'one CPU of the first NUMA node is reserved');
    assert.deepEqual(allocator.allocated().cpus?.of(podUid('one'), 'main'), [2, 3]);
    assert.equal((await allocate(asking('two', 1, 1)))?.reason, undefined);
    assert.equal((await allocate(asking('three', 1, 1)))?.reason, 'TopologyAffinityError');
  });
});

describe('the configuration of the resource allocator', () => {
  it('rejects a configuration at startup that the machine does not support', async () => {
    await using harness = new DeviceRig();
    const refused = (settings: ExclusiveResourceSettings, message: RegExp, count?: number) =>
      assert.rejects(open(harness, settings, count), (error: { code?: string; message: string }) => {
        assert.equal(error.code, 'ALLOCATION_CONFIG');
        assert.match(error.message, message);
        return true;
      });
    await refused({ topology: single }, /unsupported on machines with more than 8 NUMA Nodes/, 9);
    await refused({ cpu: { ...cpu, reservedCount: 0 } }, /to be greater than zero/);
    await refused({ cpu: { ...cpu, reservedCpus: '7' } }, /correct reservedSystemCPUs/);
    const memory = { reserved: [], required: new Map([['memory', 1n]]) };
    await refused({ memory }, /is not equal to the value "1"/);
    const options = { 'max-allowable-numa-nodes': '16' };
    await open(harness, { topology: { ...single, options } }, 9);
  });
});
