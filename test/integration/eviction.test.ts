import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import type { KubeletDeps } from '../../src/kubelet/index.ts';
import { detectCgroupLayout, formatQuantity, quantityOf, realCgroupHost } from '../../src/lib/index.ts';
import { MountedDisk } from '../disks/mounted-disk.ts';
import type { PrivateRuntime } from '../private-runtime.ts';
import { ApiNode, type ApiNodeOptions, stays } from './api-node.ts';
import {
  below,
  evicting,
  filling,
  isEvicted,
  isRunning,
  mebi,
  onDisk,
  recovers,
  scratch,
} from './eviction-fixture.ts';

/** With the memory of the pods of this node alone for that of the machine, on which others are at work as well. */
function memoryOfNode({ containerd }: PrivateRuntime): Partial<KubeletDeps['machine']> {
  const { keptFiles: _, ...host } = realCgroupHost();
  const ours = (path: string) =>
    path.startsWith(join(memoryTree, 'memory.'))
      ? join(memoryTree, containerd.layout.cgroup, basename(path))
      : path;
  return {
    cgroups: { ...host, read: (path) => host.read(ours(path)), look: (path) => host.look(ours(path)) },
  };
}

const layout = await detectCgroupLayout(realCgroupHost());
const memoryTree = layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');

const skip = process.getuid?.() === 0 ? false : 'needs root';
const timeout = 600_000;

/** With a real containerd, real cgroups and real disks; side by side, as they wait for most of the time. */
describe('eviction on a real machine', { skip, timeout, concurrency: true }, () => {
  it('a pod over a limit of its own is evicted, the others live on, and it never runs again', async () => {
    await using node = await ApiNode.open({ settings: evicting() });
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
    assert.ok(isRunning(node.status('within')));
    node.die();
    await node.start();
    await node.is('within', 'running', isRunning);
    const again = await node.is('volume', 'evicted', isEvicted);
    assert.deepEqual([again.reason, again.message], [volume.reason, volume.message]);
    for (const name of ['volume', 'layer', 'together']) {
      await node.gone(name);
      assert.ok(isEvicted(node.status(name)), name);
    }
    const { containers } = await node.inner.runtime.cri.listContainers({}, new AbortController().signal);
    const running = containers.filter(({ state }) => state === 'CONTAINER_RUNNING');
    assert.deepEqual(
      running.map(({ labels }) => labels['io.kubernetes.pod.name']),
      ['within'],
    );
  });

  it('a pod that fills the disk of the node is evicted, the node recovers and the others live on', async () => {
    using disk = new MountedDisk();
    await using node = await ApiNode.open({
      settings: { ...evicting(below('nodefs.available', 24 * mebi)), rootDir: join(disk.path, 'kubelet') },
    });
    node.add('small', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 5), ...scratch } },
    });
    node.add('large', {
      ...onDisk(),
      containers: { main: { script: filling('/scratch/x', 40), ...scratch } },
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
    assert.deepEqual(node.inner.kubelet.pressures(), ['DiskPressure']);
    await recovers(node, 'large');
    assert.ok(isRunning(node.status('small')));
  });

  const left = totalmem() - 150 * mebi;
  const memories: readonly (ApiNodeOptions & { readonly whose: string; readonly threshold: string })[] = [
    {
      whose: 'of the node',
      threshold: formatQuantity(quantityOf(left, 'BinarySI')),
      settings: evicting(below('memory.available', left)),
      machine: memoryOfNode,
    },
    {
      whose: 'pods may have',
      threshold: '100Mi',
      settings: {
        ...evicting(below('allocatableMemory.available', 100 * mebi)),
        capacity: { milliCpu: 2_000, memoryBytes: 256 * mebi, pids: 4_000 },
        reserved: { milliCpu: 0, memoryBytes: 0 },
      },
    },
  ];
  for (const { whose, threshold, ...options } of memories)
    it(`the pod far above what it asked for is evicted when memory ${whose} is short, and no other`, async () => {
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
      await node.running('guaranteed');
      node.add('modest', {
        ...inMemory,
        containers: {
          main: { script: filling('/scratch/x', 10), resources: { requests: { memory: '5Mi' } }, ...scratch },
        },
      });
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
      assert.deepEqual(node.inner.kubelet.pressures(), ['MemoryPressure']);
      await recovers(node, 'greedy');
      for (const name of ['guaranteed', 'modest']) assert.ok(isRunning(node.status(name)), name);
    });
});

/** By itself: all that runs on the machine counts. */
describe('eviction on a machine with many processes', { skip, timeout }, () => {
  it('the pod with the most processes is evicted when those are short', async () => {
    const tasks = () => Number(/\d+\/(\d+)/.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1]);
    const most = (name: string) => Number(readFileSync(`/proc/sys/kernel/${name}`, 'utf8'));
    const available = Math.min(most('pid_max'), most('threads-max')) - tasks();
    await using node = await ApiNode.open({ settings: evicting(below('pid.available', available - 600)) });
    node.add('few', { containers: { main: {} } });
    await node.running('few');
    node.add('many', {
      containers: {
        main: { script: `i=0; while [ $i -lt 900 ]; do sleep 1000 & i=$((i+1)); done; ${stays}` },
      },
    });
    const many = await node.is('many', 'evicted', isEvicted);
    assert.match(
      many.message ?? '',
      /^The node was low on resource: pids\. Threshold quantity: \d+\w*, available: \d+\w*\. $/,
    );
    assert.deepEqual(node.inner.kubelet.pressures(), ['PIDPressure']);
    await recovers(node, 'many');
    assert.ok(isRunning(node.status('few')));
  });
});
