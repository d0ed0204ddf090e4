import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pick, type Random, randomInt, seededRandom } from '../../src/lib/index.ts';
import type { Pod } from '../../src/pods/index.ts';
import { parseCpuSet } from '../../src/resources/cpu/cpu-set.ts';
import { type SketchedMachine, sysTree, treeFiles } from '../fakes/sketched-machine.ts';
import { apiPod } from '../races/pods.ts';
import { RaceNode } from '../races/race-node.ts';

/** A machine with two NUMA nodes of two cores with two threads each. */
const machine: SketchedMachine = {
  name: 'small',
  sockets: 2,
  nodes: [0, 1].map((id) => ({
    id,
    memory: 4 * 2 ** 30,
    hugePages: [],
    distances: id === 0 ? [10, 20] : [20, 10],
    cores: [0, 1].map((core) => ({ id: core, socket: id, threads: [id * 2 + core, 4 + id * 2 + core] })),
  })),
};

const reservedMemory = 100n << 20n;

async function start(): Promise<RaceNode> {
  return await RaceNode.start({
    settings: {
      apiPods: 'expected',
      capacity: { milliCpu: 8_000, memoryBytes: 8 * 2 ** 30 },
      exclusiveResources: {
        cpu: { reservedCount: 1, reservedCpus: '', options: {}, reconcileMs: 10_000 },
        memory: {
          reserved: [{ numaNode: 0, limits: new Map([['memory', reservedMemory]]) }],
          required: new Map([['memory', reservedMemory]]),
        },
        topology: { policy: 'best-effort', scope: 'container', options: {} },
      },
    },
    machine: { facts: treeFiles(sysTree(machine)) },
  });
}

function asking(name: string, cpu: string | undefined): Pod {
  const resources =
    cpu === undefined ? {} : { limits: { cpu, memory: '64Mi' }, requests: { cpu, memory: '64Mi' } };
  const pod = apiPod(name, `uid-${name}`);
  const containers = pod.spec.containers.map((container) => ({ ...container, resources }));
  return { ...pod, spec: { ...pod.spec, containers } };
}

interface Placed {
  readonly uid: string;
  readonly cpus: ReadonlySet<number>;
  readonly mems: string;
  readonly isAlone: boolean;
}

/** The running containers in random order, as the runtime may list them. */
async function placed(node: RaceNode): Promise<readonly Placed[]> {
  const cri = node.behindTheBack();
  const { signal } = new AbortController();
  const look = async () => {
    const found: Placed[] = [];
    const { containers } = await cri.listContainers(
      { filter: { state: { state: 'CONTAINER_RUNNING' } } },
      signal,
    );
    for (const { id, labels } of containers) {
      const linux = (await cri.containerStatus({ containerId: id }, signal)).status?.resources?.linux;
      const uid = labels['io.kubernetes.pod.uid'] ?? '';
      const isAlone = linux?.cpuQuota === -1n;
      found.push({ uid, cpus: parseCpuSet(linux?.cpusetCpus ?? ''), mems: linux?.cpusetMems ?? '', isAlone });
    }
    return found.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
  };
  return await node.settled(look());
}

describe('exclusive CPUs on a simulated node', () => {
  it('pins exclusive CPUs, restores them after a kubelet restart, and releases them', async () => {
    await using node = await start();
    node.api(asking('alone', '2'), asking('shared', undefined));
    await node.runs('uid-alone');
    await node.runs('uid-shared');
    await node.pass(11_000);
    const before = await placed(node);
    const alone = before.find(({ uid }) => uid === 'uid-alone');
    assert.deepEqual([alone?.cpus, alone?.mems, alone?.isAlone], [new Set([1, 5]), '0', true]);
    assert.deepEqual(before.find(({ uid }) => uid === 'uid-shared')?.cpus, new Set([0, 2, 3, 4, 6, 7]));
    await node.restartKubelet();
    node.api(asking('alone', '2'), asking('shared', undefined));
    await node.pass(15_000);
    assert.deepEqual(await placed(node), before);
    node.api(asking('shared', undefined));
    await node.pass(20_000);
    assert.equal((await placed(node))[0]?.cpus.size, 8);
  });

  it('a pod that waits for a terminating pod gets the CPUs that the terminating pod releases', async () => {
    await using node = await start();
    node.api(asking('first', '6'));
    await node.runs('uid-first');
    node.api(asking('second', '6'));
    await node.runs('uid-second', 40_000);
    assert.equal((await placed(node))[0]?.cpus.size, 6);
  });

  for (let seed = 1; seed <= 12; seed++) {
    it(`assigns no CPU to two containers during starts, stops and crashes: seed ${seed}`, () =>
      shuffled(seed));
  }
});

async function shuffled(seed: number): Promise<void> {
  const random = seededRandom(seed);
  await using node = await start();
  let pods: readonly Pod[] = [];
  for (let step = 0; step < 14; step++) {
    pods = changed(pods, step, random);
    if (random.next() < 0.2) await node.restartKubelet();
    node.api(...pods);
    await node.pass(200 + randomInt(random, 12_000));
    const alone = (await placed(node)).filter(({ isAlone }) => isAlone);
    const all = alone.flatMap(({ cpus }) => [...cpus]);
    assert.equal(new Set(all).size, all.length, `two containers share a CPU after step ${step}`);
    assert.ok(!all.includes(0), 'reserved CPUs are assigned to no container');
  }
  await node.pass(45_000);
  const last = await placed(node);
  const exclusive = new Set(last.flatMap(({ cpus, isAlone }) => (isAlone ? [...cpus] : [])));
  for (const { uid, cpus, isAlone } of last)
    if (!isAlone) assert.ok(cpus.isDisjointFrom(exclusive), `${uid} runs on a CPU of another container`);
}

function changed(pods: readonly Pod[], step: number, random: Random): readonly Pod[] {
  if (pods.length > 0 && random.next() < 0.4) {
    const gone = pick(random, pods);
    return pods.filter((pod) => pod !== gone);
  }
  return [...pods, asking(`p${step}`, pick(random, [undefined, '1', '2', '3', '1500m']))];
}
