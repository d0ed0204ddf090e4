import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CgroupHost, MetricRegistry, VirtualClock } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import type { RuntimeContainerStats } from '../../runtime/index.ts';
import type { NodeStats } from './node-stats.ts';
import { resourceMetrics } from './resource-metrics.ts';
import { StatsCollector, type StatsSources } from './stats-collector.ts';
import { summaryOf } from './summary.ts';
import { UsageRates } from './usage-rates.ts';

const { signal } = new AbortController();
const started = '2026-01-01T00:00:00Z';

const web = {
  metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
  spec: { containers: [{ name: 'main' }] },
  status: {
    startTime: started,
    containerStatuses: [{ name: 'main', state: { running: { startedAt: started } } }],
  },
} as unknown as Pod;

function hostOf(files: Readonly<Record<string, string>>): CgroupHost {
  const none = () => Promise.reject(new Error('only looks are allowed'));
  return {
    read: async (path) => files[path] ?? Promise.reject(new Error(`there is no ${path}`)),
    subdirectories: async () => [],
    mountinfo: none,
    fsType: none,
    write: none,
    mkdir: none,
    rmdir: none,
    kill() {},
  };
}

function rig(more: Partial<StatsSources> = {}) {
  const clock = new VirtualClock();
  const files: Record<string, string> = {
    '/proc/meminfo': 'MemTotal: 1000 kB\nMemFree: 300 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n',
    '/proc/stat': 'cpu 1 2 3\nbtime 1700000000\n',
    '/proc/loadavg': '0.1 0.2 0.3 2/345 999\n',
    '/proc/sys/kernel/pid_max': '4194304\n',
    '/proc/self/net/dev': ' eth0: 1 0 0 0 0 0 0 0 2 0 0 0 0 0\n',
    '/c/cpu.stat': 'usage_usec 10000000\n',
    '/c/kubepods/podu1/cpu.stat': 'usage_usec 2000000\n',
    '/c/kubepods/podu1/memory.current': '5000\n',
    '/c/kubepods/podu1/memory.stat': 'inactive_file 1000\n',
    '/c/kubepods/podu1/pids.current': '4\n',
  };
  const container: RuntimeContainerStats = {
    id: 'c1',
    name: 'main',
    podUid: 'u1',
    podName: 'web',
    podNamespace: 'default',
    atMs: clock.now(),
    cpuNanos: 1.5e9,
    nanoCores: undefined,
    memory: {
      usageBytes: 4_000,
      workingSetBytes: 3_000,
      rssBytes: 2_000,
      pageFaults: 1,
      majorPageFaults: 0,
      availableBytes: undefined,
    },
    swapBytes: 1_000,
    swapAvailableBytes: 500,
    layer: { atMs: clock.now(), usedBytes: 100, inodesUsed: 2 },
  };
  const disk = { capacityBytes: 10_000, availableBytes: 6_000, inodes: 50, inodesFree: 40 };
  const sources: StatsSources = {
    clock,
    nodeName: 'n1',
    host: hostOf(files),
    layout: { version: 2, root: '/c' },
    containers: async () => [{ ...container, atMs: clock.now() }],
    pods: () => [web],
    cgroupOf: () => '/kubepods/podu1',
    systemCgroups: { pods: '/kubepods' },
    self: () => ({ cpuNanos: 7e9, rssBytes: 80_000, startMs: 0 }),
    disk: async () => ({ ...disk, atMs: clock.now(), usedBytes: 4_000, inodesUsed: 10 }),
    images: async () => undefined,
    logs: async () => ({ atMs: clock.now(), usedBytes: 30, inodesUsed: 1 }),
    ...more,
  };
  return { clock, files, collector: new StatsCollector(sources) };
}

/** What stands at a path such as `node.cpu.time`, as its readers find it. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((found, key) => Object(found)[key], value);
}

test('the summary tells of the node, its pods and their containers', async () => {
  const { collector } = rig();
  const summary = summaryOf(await collector.collect('all', signal), 'all');
  const expected = {
    'node.nodeName': 'n1',
    'node.startTime': '2023-11-14T22:13:20Z',
    'node.cpu.usageCoreNanoSeconds': 1e10,
    'node.memory.usageBytes': 700 * 1_024,
    'node.memory.availableBytes': 300 * 1_024,
    'node.swap.swapUsageBytes': 6 * 1_024,
    'node.fs.capacityBytes': 10_000,
    'node.fs.usedBytes': 4_000,
    'node.network.txBytes': 2,
    'node.rlimit.maxpid': 4_194_304,
    'node.rlimit.curproc': 345,
    'node.systemContainers.0.name': 'kubelet',
    'node.systemContainers.1.name': 'pods',
    'pods.0.podRef.name': 'web',
    'pods.0.podRef.namespace': 'default',
    'pods.0.podRef.uid': 'u1',
    'pods.0.startTime': started,
    'pods.0.cpu.usageCoreNanoSeconds': 2e9,
    'pods.0.memory.workingSetBytes': 4_000,
    'pods.0.ephemeral-storage.usedBytes': 130,
    'pods.0.process_stats.process_count': 4,
    'pods.0.containers.0.name': 'main',
    'pods.0.containers.0.startTime': started,
    'pods.0.containers.0.memory.rssBytes': 2_000,
    'pods.0.containers.0.rootfs.usedBytes': 100,
    'pods.0.containers.0.rootfs.capacityBytes': 10_000,
    'pods.0.containers.0.logs.usedBytes': 30,
  };
  for (const [path, value] of Object.entries(expected)) assert.equal(at(summary, path), value, path);
});

test('who wants processor and memory only gets no more', async () => {
  const { collector } = rig({
    disk: () => assert.fail('nobody asked'),
    logs: () => assert.fail('nobody asked'),
  });
  const summary = summaryOf(await collector.collect('cpu-and-memory', signal), 'cpu-and-memory');
  for (const path of ['node.fs', 'node.network', 'pods.0.ephemeral-storage']) {
    assert.equal(at(summary, path), undefined, path);
  }
  for (const path of ['node.cpu.time', 'node.memory.time', 'pods.0.cpu.time']) {
    assert.notEqual(at(summary, path), undefined, path);
  }
});

test('how much is used a second is known from the second look on', async () => {
  const { collector, clock, files } = rig();
  const look = async () => (await collector.collect('cpu-and-memory', signal)).usage.nanoCores;
  assert.equal(await look(), undefined);
  await clock.advance(10_000);
  files['/c/cpu.stat'] = 'usage_usec 15000000\n';
  assert.equal(await look(), 5e8);
  assert.equal(await look(), 5e8, 'a look right after it keeps what is known');
});

test('a counter that begins anew has no rate, and those that are gone are forgotten', () => {
  const rates = new UsageRates();
  const look = (atMs: number, nanos: number) => {
    const pass = rates.begin();
    const rate = pass.note('a', atMs, nanos);
    pass.end();
    return rate;
  };
  assert.equal(look(0, 100), undefined);
  assert.equal(look(2_000, 300), 100);
  assert.equal(look(4_000, 50), undefined);
  rates.begin().end();
  assert.equal(look(6_000, 500), undefined);
});

test('where pods have no cgroup their containers are summed up', async () => {
  const { collector } = rig({ cgroupOf: () => '' });
  const { pods } = await collector.collect('cpu-and-memory', signal);
  assert.deepEqual([pods[0]?.usage.cpuNanos, pods[0]?.usage.memory?.workingSetBytes], [1.5e9, 3_000]);
});

async function pageOf(stats: NodeStats | undefined): Promise<string> {
  const page = new MetricRegistry({ onError: () => {} });
  page.collect(() => resourceMetrics(stats));
  return await page.expose(signal);
}

test('the page of metrics has a row for the node, each pod and each container, with the time of the look', async () => {
  const { collector, clock } = rig();
  const page = await pageOf(await collector.collect('cpu-and-memory', signal));
  const at = clock.now();
  const lines = page.split('\n');
  for (const line of [
    `node_cpu_usage_seconds_total 10 ${at}`,
    `node_memory_working_set_bytes ${700 * 1_024} ${at}`,
    `pod_cpu_usage_seconds_total{pod="web",namespace="default"} 2 ${at}`,
    `container_cpu_usage_seconds_total{container="main",pod="web",namespace="default"} 1.5 ${at}`,
    `container_memory_working_set_bytes{container="main",pod="web",namespace="default"} 3000 ${at}`,
    `container_swap_usage_bytes{container="main",pod="web",namespace="default"} 1000 ${at}`,
    `container_swap_limit_bytes{container="main",pod="web",namespace="default"} 1500 ${at}`,
    '# TYPE container_cpu_usage_seconds_total counter',
    'resource_scrape_error 0',
  ]) {
    assert.ok(lines.includes(line), `${line}\nis not in\n${page}`);
  }
  const start = /^container_start_time_seconds\{container="main",.*\} (\S+)$/m.exec(page)?.[1];
  assert.equal(Number(start), Date.parse(started) / 1_000);
  const failed = await pageOf(undefined);
  assert.match(failed, /^resource_scrape_error 1$/m);
  assert.doesNotMatch(failed, /node_cpu/);
});

test('the volumes of a pod are told with their claims, and those on the disk of all pods count as written', async () => {
  const space = { capacityBytes: 1_000, availableBytes: 400, inodes: 100, inodesFree: 90 };
  const own = { usedBytes: 600, inodesUsed: 10, atMs: 0 };
  const { collector } = rig({
    volumes: async () => [
      { ...space, ...own, name: 'scratch', isScratch: true },
      { ...space, ...own, name: 'data', isScratch: false, claim: { namespace: 'ns', name: 'c' } },
    ],
  });
  const { signal } = new AbortController();
  const all = JSON.parse(JSON.stringify(summaryOf(await collector.collect('all', signal), 'all')));
  const { time: _time, ...first } = all.pods[0].volume[0];
  assert.deepEqual(first, { ...space, usedBytes: 600, inodesUsed: 10, name: 'scratch' });
  assert.deepEqual(all.pods[0].volume[1].pvcRef, { name: 'c', namespace: 'ns' });
  assert.deepEqual(
    [all.pods[0]['ephemeral-storage'].usedBytes, all.pods[0]['ephemeral-storage'].inodesUsed],
    [600 + 100 + 30, 10 + 2 + 1],
  );
  const few = await collector.collect('cpu-and-memory', signal);
  assert.equal(few.pods[0]?.volumes, undefined);
});
