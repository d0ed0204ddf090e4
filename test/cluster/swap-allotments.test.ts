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

/**
 * Builds a configuration with static policies that reserves CPU for the system and leaves one
 * exclusive CPU.
 */
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

/**
 * A Guaranteed pod whose main container has an exclusive CPU, which its init container used before.
 */
const alone = podSpec(
  [container('main', amounts('1', '64Mi')), container('beside', amounts('100m', '16Mi'))],
  {
    initContainers: [container('first', { ...amounts('1', '32Mi'), command: ['true'] })],
  },
);

describe('a node with static policies switches between kubeling and the Go kubelet', {
  skip: noSwap(),
  timeout: 900_000,
}, () => {
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

  /**
   * Returns the reason and message of a rejected pod, as the kubelet's /pods endpoint reports it.
   */
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
    throw new Error(`Cannot find ${file} of container ${id} below ${node.cgroup}`);
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

  /** Returns the properties that change when a container is restarted or moved to other CPUs. */
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

  /**
   * Waits until the kubelet has evaluated the existing pods: it has run a new pod and removed it.
   */
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
    // The Go kubelet allocates memory again for init containers that have exited, so its memory
    // checkpoint may have additional entries.
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

  it('gives a container an exclusive CPU under the Go kubelet', async () => {
    await put('idle');
    await put('alone', alone);
    await hasLast('alone');
    await moved('idle', shared);
  });

  it('keeps containers, CPUs and checkpoints after a switch to kubeling', async () => {
    await changeTo('kubeling', 'alone', 'idle');
    await put('late', alone);
    assert.deepEqual(await failed('late'), refusal);
    await ended('late');
  });

  it('gives the exclusive CPU to another container under kubeling', async () => {
    await ended('alone');
    await moved('idle', all);
    await put('next', alone);
    await hasLast('next');
    await moved('idle', shared);
  });

  it('keeps containers, CPUs and checkpoints after a switch to the Go kubelet, which accepts the checkpoints of kubeling', async () => {
    await changeTo(goKubelet(), 'next', 'idle');
    await put('late', alone);
    assert.deepEqual(await failed('late'), refusal);
    await ended('late');
  });

  it('releases all CPUs when the pod ends under the Go kubelet', async () => {
    await ended('next');
    await moved('idle', all);
    await node.changeTo('kubeling');
    await put('other', alone);
    await hasLast('other');
    await moved('idle', shared);
  });

  it('releases all CPUs when kubeling runs without the policies, and the Go kubelet accepts the result', async () => {
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
