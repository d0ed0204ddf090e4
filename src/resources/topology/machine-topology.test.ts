import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type SketchedMachine, sysTree, treeFiles } from '../../../test/fakes/sketched-machine.ts';
import { readMachineTopology } from './machine-topology.ts';

const gib = 2 ** 30;
const sketch: SketchedMachine = {
  name: 'two sockets',
  sockets: 2,
  nodes: [0, 1].map((id) => ({
    id,
    memory: 4 * gib,
    hugePages: [{ sizeKb: 2048, pages: 16 + id }],
    distances: id === 0 ? [10, 21] : [21, 10],
    cores: [0, 1].map((core) => ({
      id: core,
      socket: id,
      threads: [id * 2 + core, 4 + id * 2 + core],
      uncore: id * 2 + core,
    })),
  })),
};

async function read(tree: ReadonlyMap<string, string>) {
  return await readMachineTopology(treeFiles(tree));
}

describe('readMachineTopology', () => {
  it('reads the NUMA node, socket, core and uncore cache of each CPU', async () => {
    const { cpus } = await read(sysTree(sketch));
    assert.deepEqual([...cpus.keys()], [0, 1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual(cpus.get(7), { numaNode: 1, socket: 1, core: 3, uncoreCache: 3 });
    assert.deepEqual(cpus.get(4), { numaNode: 0, socket: 0, core: 0, uncoreCache: 0 });
  });

  it('reads the memory and the distances of each NUMA node', async () => {
    const { numaNodes } = await read(sysTree(sketch));
    assert.deepEqual(numaNodes[1], {
      id: 1,
      memoryBytes: 4 * gib,
      hugePages: [{ pageBytes: 2 ** 21, count: 17 }],
      distances: new Map([
        [0, 21],
        [1, 10],
      ]),
    });
  });

  it('uses the socket as uncore cache if a NUMA node has only one cache', async () => {
    const whole = {
      ...sketch,
      nodes: sketch.nodes.map((node) => ({
        ...node,
        cores: node.cores.map(({ uncore: _, ...core }) => core),
      })),
    };
    const { cpus } = await read(sysTree(whole));
    assert.deepEqual(new Set([...cpus.values()].map(({ uncoreCache }) => uncoreCache)), new Set([0, 1]));
  });

  it('omits offline CPUs from the topology', async () => {
    const tree = new Map(sysTree(sketch)).set('/sys/devices/system/cpu/online', '0-5\n');
    assert.deepEqual([...(await read(tree)).cpus.keys()], [0, 1, 2, 3, 4, 5]);
  });

  it('uses sockets as NUMA nodes without NUMA support in the kernel', async () => {
    const tree = new Map([...sysTree(sketch)].filter(([path]) => !path.includes('/node/')));
    const { numaNodes, cpus } = await read(tree);
    assert.deepEqual(
      numaNodes.map(({ id, memoryBytes }) => [id, memoryBytes]),
      [
        [0, 0],
        [1, 0],
      ],
    );
    assert.equal(cpus.get(6)?.numaNode, 1);
  });

  it('rejects a machine without CPU topology', async () => {
    await assert.rejects(read(new Map()), { code: 'MACHINE_TOPOLOGY' });
  });
});
