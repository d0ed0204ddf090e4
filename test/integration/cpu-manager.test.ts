import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { detectCgroupLayout, realCgroupHost } from '../../src/lib/index.ts';
import { formatCpuSet } from '../../src/resources/cpu/cpu-set.ts';
import { decodeCpuCheckpoint } from '../../src/resources/cpu/cpu-state.ts';
import { decodeMemoryCheckpoint } from '../../src/resources/memory/memory-checkpoint.ts';
import { InProcessNode, type PodParts } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';

const layout = await detectCgroupLayout(realCgroupHost());
const skip = process.getuid?.() !== 0 ? 'needs root' : availableParallelism() < 2 ? 'needs two CPUs' : false;
const script = 'trap "exit 0" TERM; while :; do sleep 1; done';

/** A Guaranteed pod with one full CPU. */
const alone: PodParts = {
  spec: { terminationGracePeriodSeconds: 1 },
  containers: {
    main: {
      script,
      resources: { limits: { cpu: '1', memory: '64Mi' }, requests: { cpu: '1', memory: '64Mi' } },
    },
  },
};
const shared: PodParts = { spec: { terminationGracePeriodSeconds: 1 }, containers: { main: script } };

describe('the static CPU policy on a real machine', { skip, timeout: 300_000 }, () => {
  const all = Array.from({ length: availableParallelism() }, (_, cpu) => cpu);
  const list = (cpus: readonly number[]) => formatCpuSet(new Set(cpus));
  let node: InProcessNode;

  before(async () => {
    const reserved = all.slice(0, -1).join(',');
    node = await InProcessNode.open({
      flags: ['--cpu-manager-policy=static', `--reserved-cpus=${reserved}`],
    });
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** Reads a file of the cgroup of the pod's container. */
  async function held(name: string, controller: string, file: string): Promise<string> {
    const pod = await node.podIs(name, 'running', ({ phase }) => phase === 'Running');
    const id = (pod.status.containerStatuses?.[0]?.containerID ?? '').replace(/^.*:\/\//, '');
    const root = layout.version === 1 ? layout.controllers.get(controller) : layout.root;
    return (await readFile(join(root ?? '', node.kubelet.endpoints.cgroupOf(pod), id, file), 'utf8')).trim();
  }

  const cpusOf = (name: string) => held(name, 'cpuset', 'cpuset.cpus');
  const state = async () =>
    decodeCpuCheckpoint(await readFile(node.path('kubelet', 'cpu_manager_state'), 'utf8')).state;

  async function moved(name: string, cpus: string): Promise<void> {
    let observed = '';
    const look = async () => {
      observed = await cpusOf(name);
      return observed === cpus ? true : undefined;
    };
    await eventually(`${name} to run on ${cpus}`, look, 30_000, () => observed);
  }

  it('pins a container to an exclusive CPU and moves the other containers to the remaining CPUs', async () => {
    await node.put({ shared });
    assert.equal(await cpusOf('shared'), list(all));
    await node.put({ alone });
    assert.equal(await cpusOf('alone'), list(all.slice(-1)));
    await moved('shared', list(all.slice(0, -1)));
    const pod = await node.podIs('alone', 'there', () => true);
    assert.deepEqual([...(await state()).assignments.keys()], [pod.metadata.uid]);
    if (layout.version === 1) assert.equal(await held('alone', 'cpu', 'cpu.cfs_quota_us'), '-1');
  });

  it('rejects a pod when no exclusive CPU is free and keeps the other assignments', async () => {
    await node.put({ late: alone });
    const { status } = await node.podIs('late', 'over', ({ phase }) => phase === 'Failed');
    assert.equal(status.reason, 'UnexpectedAdmissionError');
    assert.equal(
      status.message,
      'Pod was rejected: Allocate failed due to not enough cpus available to satisfy request: requested=1, available=0, which is unexpected',
    );
    assert.equal(await cpusOf('alone'), list(all.slice(-1)));
  });

  it('the static CPU policy keeps its assignments after a restart and rebuilds a broken checkpoint from the running containers', async () => {
    const { metadata } = await node.podIs('alone', 'there', () => true);
    await node.stop();
    const path = node.path('kubelet', 'cpu_manager_state');
    await writeFile(path, '{"policyName":"static","defaultCpuSet":"0","entr');
    await node.start();
    await node.podIs('alone', 'running', ({ phase }) => phase === 'Running');
    assert.deepEqual([...(await state()).assignments.keys()], [metadata.uid]);
    assert.equal(await cpusOf('alone'), list(all.slice(-1)));
  });

  it('releases the CPU when the pod has terminated', async () => {
    await node.take('alone', 'late');
    await moved('shared', list(all));
    await eventually('the checkpoint to show the release', async () =>
      (await state()).assignments.size === 0 ? true : undefined,
    );
    await node.put({ next: alone });
    assert.equal(await cpusOf('next'), list(all.slice(-1)));
  });

  it('removes all CPU pinning when the policy is switched off', async () => {
    await node.stop();
    await node.start({ exclusiveResources: undefined });
    await moved('next', list(all));
    await moved('shared', list(all));
    const text = await readFile(node.path('kubelet', 'cpu_manager_state'), 'utf8');
    assert.equal(decodeCpuCheckpoint(text).policyName, 'none');
  });
});

describe('the memory and topology policies on a real machine', { skip, timeout: 300_000 }, () => {
  const reserved = Array.from({ length: availableParallelism() - 1 }, (_, cpu) => cpu).join(',');
  let node: InProcessNode;

  before(async () => {
    node = await InProcessNode.open({
      flags: [
        '--cpu-manager-policy=static',
        `--reserved-cpus=${reserved}`,
        '--memory-manager-policy=Static',
        '--kube-reserved=memory=100Mi',
        // The reservation must include the memory of hard eviction thresholds.
        '--reserved-memory=0:memory=200Mi',
        '--topology-manager-policy=single-numa-node',
        '--topology-manager-scope=pod',
      ],
    });
  });
  after(() => node?.[Symbol.asyncDispose]());

  it('the policies bind a container to the NUMA node of its memory', async () => {
    await node.put({ alone });
    const { metadata, status } = await node.podIs('alone', 'running', ({ phase }) => phase === 'Running');
    const containerId = (status.containerStatuses?.[0]?.containerID ?? '').replace(/^.*:\/\//, '');
    const { signal } = new AbortController();
    const reported = await node.runtime.cri.containerStatus({ containerId }, signal);
    assert.equal(reported.status?.resources?.linux?.cpusetMems, '0');
    const text = await readFile(node.path('kubelet', 'memory_manager_state'), 'utf8');
    const { state } = decodeMemoryCheckpoint(text);
    assert.deepEqual(state.assignments.get(metadata.uid)?.get('main'), [
      { numaAffinity: [0], type: 'memory', size: 64 * 2 ** 20 },
    ]);
  });

  it('the policies reject a pod that cannot get all resources from one NUMA node', async () => {
    await node.put({ late: alone });
    const { status } = await node.podIs('late', 'over', ({ phase }) => phase === 'Failed');
    assert.deepEqual(
      [status.reason, status.message],
      ['TopologyAffinityError', 'Pod was rejected: Resources cannot be allocated with Topology locality'],
    );
  });
});
