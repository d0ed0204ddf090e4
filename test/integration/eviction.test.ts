import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import type { KubeletDeps } from '../../src/kubelet/index.ts';
import { detectCgroupLayout, formatQuantity, quantityOf, realCgroupHost } from '../../src/lib/index.ts';
import { MountedDisk } from '../disks/mounted-disk.ts';
import type { PrivateRuntime } from '../private-runtime.ts';
import { ApiNode, type ApiNodeOptions, runsUntilSigterm } from './api-node.ts';
import {
  comesUnderPressure,
  evicting,
  evictions,
  filling,
  hardThreshold,
  isEvicted,
  isRunning,
  mebi,
  onDisk,
  recovers,
  scratch,
  softThreshold,
} from './eviction-fixture.ts';

/**
 * Counts the memory of this node's pods as that of the whole machine, because other processes use
 * the machine too.
 */
function memoryOfNode({ containerd }: PrivateRuntime): Partial<KubeletDeps['machine']> {
  const { openFiles: _, ...host } = realCgroupHost();
  const ours = (path: string) =>
    path.startsWith(join(memoryTree, 'memory.'))
      ? join(memoryTree, containerd.layout.cgroup, basename(path))
      : path;
  return {
    cgroups: {
      ...host,
      read: (path) => host.read(ours(path)),
      readSync: (path) => host.readSync(ours(path)),
    },
  };
}

const layout = await detectCgroupLayout(realCgroupHost());
const memoryTree = layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');

const skip = process.getuid?.() === 0 ? false : 'needs root';
const timeout = 600_000;

/**
 * The tests use a real containerd, real cgroups and real disks; they run concurrently, because they
 * wait most of the time.
 */
describe('eviction on a real machine', { skip, timeout, concurrency: true }, () => {
  it('evicts a pod that exceeds its own limit of local storage, never restarts the pod, and keeps the other pods running', async () => {
    await using node = await ApiNode.open({ settings: evicting(), countsEverySeconds: 1 });
    const limits = { 'ephemeral-storage': '2Mi' };
    node.add('volume', {
      ...onDisk('1Mi'),
      containers: { main: { script: filling('/scratch/x', 3), ...scratch } },
    });
    node.add('within', {
      ...onDisk('4Mi'),
      containers: { main: { script: filling('/scratch/x', 3), ...scratch } },
    });
    node.add('layer', {
      containers: {
        main: { script: filling('/x', 5), resources: { limits } },
        other: { resources: { limits: { 'ephemeral-storage': '1Gi' } } },
      },
    });
    node.add('together', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 5), resources: { limits }, ...scratch } },
    });
    const volume = await node.is('volume', 'evicted', isEvicted);
    assert.equal(volume.message, 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ');
    assert.ok(node.events('volume').includes(`Evicted: ${volume.message}`));
    assert.equal(
      volume.conditions?.find(({ type }) => type === 'DisruptionTarget'),
      undefined,
    );
    const layer = await node.is('layer', 'evicted', isEvicted);
    assert.equal(layer.message, 'Container main exceeded its local ephemeral storage limit "2Mi". ');
    const together = await node.is('together', 'evicted', isEvicted);
    assert.equal(
      together.message,
      'Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ',
    );
    await node.is('within', 'running', isRunning);
    node.crash();
    await node.start();
    await node.is('within', 'running', isRunning);
    const again = await node.is('volume', 'evicted', isEvicted);
    assert.deepEqual([again.reason, again.message], [volume.reason, volume.message]);
    for (const name of ['volume', 'layer', 'together']) {
      await node.terminated(name);
      assert.ok(isEvicted(node.status(name)), name);
    }
    const { containers } = await node.inner.runtime.cri.listContainers({}, new AbortController().signal);
    const running = containers.filter(({ state }) => state === 'CONTAINER_RUNNING');
    assert.deepEqual(
      running.map(({ labels }) => labels['io.kubernetes.pod.name']),
      ['within'],
    );
  });

  it("evicts a pod that fills the node's disk, with the pod's grace period if a soft threshold is exceeded, and keeps the other pods running", async () => {
    using disk = new MountedDisk();
    const soft = softThreshold('nodefs.available', 36 * mebi, 2_000);
    await using node = await ApiNode.open({
      settings: {
        ...evicting(soft, hardThreshold('nodefs.available', 24 * mebi)),
        rootDir: join(disk.path, 'kubelet'),
      },
      countsEverySeconds: 1,
    });
    node.add('small', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 5), ...scratch } },
    });
    // The pod must have stats first, because a pod without stats is ranked first.
    await node.running('small');
    node.add('large', {
      ...onDisk(),
      // The memory is allocated in one step, so that the node exceeds the threshold suddenly.
      containers: { main: { script: `fallocate -l 40M /scratch/x; ${runsUntilSigterm}`, ...scratch } },
    });
    const large = await node.is('large', 'evicted', isEvicted);
    assert.match(
      large.message ?? '',
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 24Mi, available: \d+\w*\. (?:Container main was using \d+\w*, request is 0, has larger consumption of ephemeral-storage\. )?$/,
    );
    assert.ok(
      large.conditions?.some(
        ({ type, reason }) => type === 'DisruptionTarget' && reason === 'TerminationByKubelet',
      ),
    );
    assert.deepEqual(node.inner.kubelet.control.pressures(), ['DiskPressure']);
    await recovers(node, 'large');
    assert.ok(isRunning(node.status('small')));

    const time = 'read -r at rest </proc/uptime; echo $at';
    const hostPath = { path: node.inner.path('shared', 'slow'), type: 'DirectoryOrCreate' };
    node.add('slow', {
      volumes: [...onDisk().volumes, { name: 'shared', hostPath }],
      terminationGracePeriodSeconds: 100,
      containers: {
        main: {
          script: `trap '${time} >>/shared/asked' TERM
dd if=/dev/zero of=/scratch/x bs=1M count=15
while true; do ${time} >>/shared/alive; sleep 0.05; done`,
          volumeMounts: [...scratch.volumeMounts, { name: 'shared', mountPath: '/shared' }],
        },
      },
    });
    await comesUnderPressure(node, 'DiskPressure', 'slow');
    assert.deepEqual(evictions(node, 'slow'), [], 'too early for an eviction');
    const slow = await node.is('slow', 'evicted', isEvicted);
    assert.match(slow.message ?? '', /ephemeral-storage\. Threshold quantity: 36Mi, available: \d+\w*\. /);
    await node.terminated('slow');
    const [asked, ...more] = await node.lines('slow', 'asked');
    const last = (await node.lines('slow', 'alive')).at(-1);
    assert.deepEqual(more, [], 'asked once');
    const hadSeconds = Number(last) - Number(asked);
    assert.ok(hadSeconds > 2 && hadSeconds < 50, `it had ${hadSeconds} of 3 s and requests 100`);
    await recovers(node, 'slow');
    assert.ok(isRunning(node.status('small')));
  });

  const left = totalmem() - 150 * mebi;
  const memories: readonly (ApiNodeOptions & { readonly whose: string; readonly threshold: string })[] = [
    {
      whose: 'of the node',
      threshold: formatQuantity(quantityOf(left, 'BinarySI')),
      settings: evicting(hardThreshold('memory.available', left)),
      machine: memoryOfNode,
    },
    {
      whose: 'pods may have',
      threshold: '100Mi',
      settings: {
        ...evicting(hardThreshold('allocatableMemory.available', 100 * mebi)),
        capacity: { milliCpu: 2_000, memoryBytes: 256 * mebi, pids: 4_000 },
        reserved: { milliCpu: 0, memoryBytes: 0 },
      },
    },
  ];
  for (const { whose, threshold, ...options } of memories)
    it(`evicts only the pod far above its memory request when memory ${whose} is short`, async () => {
      await using node = await ApiNode.open(options);
      const inMemory = { volumes: [{ name: 'scratch', emptyDir: { medium: 'Memory' } }] };
      const amounts = { cpu: '10m', memory: '80Mi' };
      node.add('guaranteed', {
        ...inMemory,
        containers: {
          main: {
            script: filling('/scratch/x', 60),
            resources: { requests: amounts, limits: amounts },
            ...scratch,
          },
        },
      });
      node.add('modest', {
        ...inMemory,
        containers: {
          main: { script: filling('/scratch/x', 10), resources: { requests: { memory: '5Mi' } }, ...scratch },
        },
      });
      for (const name of ['guaranteed', 'modest']) await node.running(name);
      node.add('greedy', {
        ...inMemory,
        containers: {
          main: {
            script: filling('/scratch/x', 100),
            resources: { requests: { memory: '5Mi' } },
            ...scratch,
          },
        },
      });
      const greedy = await node.is('greedy', 'evicted', isEvicted);
      assert.match(
        greedy.message ?? '',
        new RegExp(
          String.raw`^The node was low on resource: memory\. Threshold quantity: ${threshold}, available: \d+\w*\. ` +
            String.raw`Container main was using \d+\w*, request is 5Mi, has larger consumption of memory\. $`,
        ),
      );
      assert.deepEqual(node.inner.kubelet.control.pressures(), ['MemoryPressure']);
      await recovers(node, 'greedy');
      for (const name of ['guaranteed', 'modest']) assert.ok(isRunning(node.status(name)), name);
    });
});
