import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Container } from '../../src/cri/index.ts';
import type { Pod } from '../../src/kinds/index.ts';
import { detectCgroupLayout, realCgroupHost } from '../../src/lib/index.ts';
import { freePorts } from '../free-ports.ts';
import { ClusterNode } from './cluster-node.ts';
import { container, pod, podSpec } from './cluster-pods.ts';
import { patiently } from './patiently.ts';
import { goKubelet, noGoKubelet } from './programs.ts';

const layout = await detectCgroupLayout(realCgroupHost());
const processors = availableParallelism();
const files = ['cpu_manager_state', 'memory_manager_state'];

function noSwap(): string | false {
  if (process.getuid?.() !== 0) return 'takes root';
  return processors < 2 ? 'takes two processors' : noGoKubelet();
}

/** There is one processor that a container can have alone, and half of another for those that share. */
function config(readOnlyPort: number): object {
  return {
    readOnlyPort,
    cpuManagerPolicy: 'static',
    cpuManagerReconcilePeriod: '1s',
    memoryManagerPolicy: 'Static',
    topologyManagerPolicy: 'single-numa-node',
    topologyManagerScope: 'pod',
    evictionHard: { 'memory.available': '100Mi' },
    kubeReserved: { cpu: `${processors * 1_000 - 1_500}m`, memory: '100Mi' },
    reservedMemory: [{ numaNode: 0, limits: { memory: '200Mi' } }],
  };
}

function entriesOf(note = '{}'): object {
  const { entries = {} } = JSON.parse(note) as { readonly entries?: object };
  return entries;
}

function amounts(cpu: string, memory: string): object {
  return { resources: { limits: { cpu, memory }, requests: { cpu, memory } } };
}

/** Guaranteed; one of its containers has a processor to itself, after an init container that had the same. */
const alone = podSpec(
  [container('main', amounts('1', '64Mi')), container('beside', amounts('100m', '16Mi'))],
  {
    initContainers: [container('first', { ...amounts('1', '32Mi'), command: ['true'] })],
  },
);

describe('a node with static policies that changes its kubelet', { skip: noSwap(), timeout: 900_000 }, () => {
  let node: ClusterNode;
  let readOnlyPort: number;

  before(async () => {
    [readOnlyPort = 0] = await freePorts(1);
    node = await ClusterNode.openAlone({ kubelet: goKubelet(), config: config(readOnlyPort) });
    await node.start();
  });
  after(async () => {
    assert.deepEqual((await node?.leave()) ?? [], [], 'the machine must be as it was before');
  });

  const fullName = (name: string) => `${name}-${node.name}`;
  const told = () => node.out.slice(-4_000);
  const put = (name: string, spec?: object) => node.put(`${name}.json`, pod(name, spec));
  const notes = () => Promise.all(files.map((file) => readFile(join(node.rootDir, file), 'utf8')));

  async function running(name: string): Promise<readonly Container[]> {
    const containers = await node.containersOf(fullName(name));
    return containers.filter(({ state }) => state === 'CONTAINER_RUNNING');
  }

  async function runs(name: string, count = 1): Promise<readonly Container[]> {
    const look = async () => {
      const found = await running(name);
      return found.length === count ? found : undefined;
    };
    return await patiently(`${name} to run`, look, told);
  }

  async function ended(name: string): Promise<void> {
    await node.take(`${name}.json`);
    const look = async () => ((await running(name)).length === 0 ? true : undefined);
    await patiently(`${name} to end`, look, told);
  }

  /** What the kubelet itself says of the pod. */
  async function failed(name: string): Promise<readonly (string | undefined)[]> {
    const url = `http://127.0.0.1:${readOnlyPort}/pods`;
    let observed: Pod | undefined;
    const { status } = await patiently(
      `${name} to be refused`,
      async () => {
        const { items } = (await (await fetch(url)).json()) as { readonly items: readonly Pod[] };
        observed = items.find(({ metadata }) => metadata?.name === fullName(name));
        return observed?.status?.phase === 'Failed' ? observed : undefined;
      },
      () => `${JSON.stringify(observed)}\n${told()}`,
    );
    return [status?.reason, status?.message];
  }

  async function held(id: string, controller: string, file: string): Promise<string> {
    const root = layout.version === 1 ? (layout.controllers.get(controller) ?? '') : layout.root;
    for await (const path of glob(`**/${id}/${file}`, { cwd: join(root, node.cgroup) }))
      return (await readFile(join(root, node.cgroup, path), 'utf8')).trim();
    throw new Error(`There is no ${file} of ${id} below ${node.cgroup}`);
  }

  const cpusOf = async (id: string) => await held(id, 'cpuset', 'cpuset.cpus');

  async function moved(name: string, cpus: string): Promise<void> {
    const [{ id } = { id: '' }] = await runs(name);
    let observed = '';
    const look = async () => {
      observed = await cpusOf(id);
      return observed === cpus ? true : undefined;
    };
    await patiently(`${name} to run on ${cpus}`, look, () => `${observed}\n${told()}`);
  }

  /** All that would be another if a container had been restarted or moved. */
  async function picture(...names: readonly string[]) {
    const containers = await Promise.all(names.map((name) => node.containersOf(fullName(name))));
    const pictures = containers.flat().map(async ({ id, state, podSandboxId, labels, annotations }) => ({
      container: labels['io.kubernetes.container.name'],
      uid: labels['io.kubernetes.pod.uid'],
      restarts: annotations['io.kubernetes.container.restartCount'],
      id,
      state,
      podSandboxId,
      ...(state === 'CONTAINER_RUNNING' && {
        cpus: await cpusOf(id),
        mems: await held(id, 'cpuset', 'cpuset.mems'),
      }),
    }));
    const byId = (each: { readonly id: string }, other: { readonly id: string }) =>
      each.id.localeCompare(other.id);
    return (await Promise.all(pictures)).sort(byId);
  }

  /** Waits until the kubelet has judged what it found: it has run a new pod and ended it. */
  async function lived(cpus = shared): Promise<void> {
    await put('passing');
    await moved('passing', cpus);
    await ended('passing');
  }

  async function changeTo(kubelet: string, ...names: readonly string[]): Promise<void> {
    const before = await picture(...names);
    const [cpusBefore, memoryBefore] = await notes();
    const said = node.out.length;
    await node.changeTo(kubelet);
    await lived();
    assert.deepEqual(await picture(...names), before);
    const [cpus, memory] = await notes();
    assert.equal(cpus, cpusBefore);
    // The other one sets memory aside again for init containers that have ended.
    if (kubelet === 'kubeling') assert.equal(memory, memoryBefore);
    assert.partialDeepStrictEqual(entriesOf(memory), entriesOf(memoryBefore));
    assert.doesNotMatch(node.out.slice(said), /mended|checksum|corrupt/i);
  }

  const last = `${processors - 1}`;
  const shared = processors === 2 ? '0' : `0-${processors - 2}`;
  const all = `0-${processors - 1}`;
  const refusal = [
    'TopologyAffinityError',
    'Pod was rejected: Resources cannot be allocated with Topology locality',
  ];

  async function hasLast(name: string): Promise<void> {
    let observed: Readonly<Record<string, string>> = {};
    const look = async () => {
      const places = (await runs(name, 2)).map(
        async ({ id, labels }) => [labels['io.kubernetes.container.name'], await cpusOf(id)] as const,
      );
      observed = Object.fromEntries(await Promise.all(places));
      return observed['main'] === last && observed['beside'] === shared ? true : undefined;
    };
    await patiently(`${name} to have a processor`, look, () => `${JSON.stringify(observed)}\n${told()}`);
  }

  it('gives a container a processor under the Go kubelet', async () => {
    await put('idle');
    await put('alone', alone);
    await hasLast('alone');
    await moved('idle', shared);
  });

  it('goes on under kubeling: nobody is restarted or moved, and what is noted stays', async () => {
    await changeTo('kubeling', 'alone', 'idle');
    await put('late', alone);
    assert.deepEqual(await failed('late'), refusal);
    await ended('late');
  });

  it('gives the processor to another under kubeling', async () => {
    await ended('alone');
    await moved('idle', all);
    await put('next', alone);
    await hasLast('next');
    await moved('idle', shared);
  });

  it('goes on under the Go kubelet, which takes the files as if they were its own', async () => {
    await changeTo(goKubelet(), 'next', 'idle');
    await put('late', alone);
    assert.deepEqual(await failed('late'), refusal);
    await ended('late');
  });

  it('has all of them free again when the pod ends there', async () => {
    await ended('next');
    await moved('idle', all);
    await node.changeTo('kubeling');
    await put('other', alone);
    await hasLast('other');
    await moved('idle', shared);
  });

  it('lets go of all of it when the policies are no longer wanted, which the other one takes as well', async () => {
    const ids = async () => (await picture('other', 'idle')).map(({ id }) => id);
    const before = await ids();
    const none = ['cpu-manager-policy=none', 'memory-manager-policy=None', 'topology-manager-policy=none'];
    const flags = none.map((each) => `--${each}`);
    await node.changeTo('kubeling', ...flags);
    await moved('idle', all);
    await node.changeTo(goKubelet(), ...flags);
    await lived(all);
    await node.changeTo('kubeling');
    await hasLast('other');
    await moved('idle', shared);
    assert.deepEqual(await ids(), before);
  });
});
