import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { EvictionSignal, EvictionThreshold } from '../../src/config/index.ts';
import type { PodStatus } from '../../src/kinds/index.ts';
import type { KubeletSettings } from '../../src/kubelet/index.ts';
import { quantityOf } from '../../src/lib/index.ts';
import { LoopDisk } from '../disks/loop-disk.ts';
import { ApiNode, stays } from './api-node.ts';

const mebi = 1024 ** 2;

function below(signal: EvictionSignal, amount: number): EvictionThreshold {
  const value = { quantity: quantityOf(amount, 'BinarySI') };
  return { signal, kind: 'hard', value, gracePeriodMs: 0, minimumReclaim: undefined };
}

/** Pods are evicted for these and nothing else, whatever the machine itself is short of. */
function evicting(...thresholds: readonly EvictionThreshold[]): Partial<KubeletSettings> {
  const eviction = {
    thresholds,
    transitionMs: 5_000,
    maxPodGraceSeconds: 1,
    localStorage: 'limited',
    memoryGuard: 'off',
  } as const;
  return { eviction };
}

const isEvicted = ({ phase, reason }: PodStatus) => phase === 'Failed' && reason === 'Evicted';
const isRunning = ({ phase }: PodStatus) => phase === 'Running';
const scratch = { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] };
const onDisk = (sizeLimit?: string) => ({
  volumes: [{ name: 'scratch', emptyDir: sizeLimit === undefined ? {} : { sizeLimit } }],
});
const filling = (path: string, mebibytes: number) =>
  `dd if=/dev/zero of=${path} bs=1M count=${mebibytes}; ${stays}`;

/** With a real containerd, real cgroups and real disks. */
describe('eviction on a real machine', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
  timeout: 600_000,
}, () => {
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
    const folder = mkdtempSync(join(tmpdir(), 'klg-evict-'));
    using disk = new LoopDisk(join(folder, 'disk'));
    disk.format();
    const place = mkdtempSync(join(folder, 'nodefs-'));
    execFileSync('mount', [disk.device, place]);
    try {
      await using node = await ApiNode.open({
        settings: {
          ...evicting(below('nodefs.available', 24 * mebi)),
          rootDir: join(place, 'kubelet'),
        },
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
      await node.until('the pressure to be over', 'large', () =>
        node.inner.kubelet.pressures().length === 0 ? true : undefined,
      );
      assert.ok(isRunning(node.status('small')));
    } finally {
      execFileSync('umount', ['--lazy', place]);
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('the pod far above what it asked for is evicted when memory is short, and no other', async () => {
    const limit = 256 * mebi;
    await using node = await ApiNode.open({
      settings: {
        ...evicting(below('allocatableMemory.available', 100 * mebi)),
        capacity: { milliCpu: 2_000, memoryBytes: limit, pids: 4_000 },
        reserved: { milliCpu: 0, memoryBytes: 0 },
      },
    });
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
        main: { script: filling('/scratch/x', 100), resources: { requests: { memory: '5Mi' } }, ...scratch },
      },
    });
    const greedy = await node.is('greedy', 'evicted', isEvicted);
    assert.match(
      greedy.message ?? '',
      /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+\w*\. Container main was using \d+\w*, request is 5Mi, has larger consumption of memory\. $/,
    );
    assert.deepEqual(node.inner.kubelet.pressures(), ['MemoryPressure']);
    await node.until('the pressure to be over', 'greedy', () =>
      node.inner.kubelet.pressures().length === 0 ? true : undefined,
    );
    for (const name of ['guaranteed', 'modest']) assert.ok(isRunning(node.status(name)), name);
  });

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
    await node.until('the pressure to be over', 'many', () =>
      node.inner.kubelet.pressures().length === 0 ? true : undefined,
    );
    assert.ok(isRunning(node.status('few')));
  });
});
