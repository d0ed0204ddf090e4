import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { ContainerStats } from '../cri/index.ts';
import { type CgroupHost, MetricRegistry } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import { UsageRates } from './container-stats.ts';
import type { NodeStats } from './node-stats.ts';
import type { PodSubject } from './pod-subjects.ts';
import { resourceMetrics } from './resource-metrics.ts';
import { StatsProvider, type StatsProviderDeps } from './stats-provider.ts';
import { summaryOf } from './summary.ts';

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
  const none = () => Promise.reject(new Error('these cgroup files are read-only'));
  return {
    read: async (path) => files[path] ?? Promise.reject(new Error(`there is no ${path}`)),
    readSync: (path) => files[path],
    subdirectories: async () => [],
    mountinfo: none,
    fsType: none,
    write: none,
    mkdir: none,
    rmdir: none,
    kill() {},
  };
}

const own = {
  cpuNanos: 7e9,
  rssBytes: 80_000,
  startMs: 0,
  pageFaults: 5,
  majorPageFaults: 1,
};
const disk = {
  capacityBytes: 10_000,
  availableBytes: 6_000,
  usedBytes: 4_000,
  inodes: 50,
  inodesFree: 40,
  inodesUsed: 10,
};

const main = { id: 'c1', name: 'main', image: 'busybox', createdAtMs: Date.parse(started) };
const subject: PodSubject = {
  uid: 'u1',
  name: 'web',
  namespace: 'default',
  pod: web,
  startTime: started,
  cgroup: '/kubepods/podu1',
  network: 'pod',
  sandbox: { id: 's1', createdAtMs: Date.parse(started) },
  containers: [main],
};

function statsOf(clock: VirtualClock): ContainerStats {
  const value = (number: number) => ({ value: BigInt(number) });
  const timestamp = BigInt(clock.now()) * 1_000_000n;
  return {
    attributes: {
      id: 'c1',
      metadata: { name: 'main', attempt: 0 },
      labels: { 'io.kubernetes.pod.uid': 'u1' },
      annotations: {},
    },
    cpu: { timestamp, usageCoreNanoSeconds: value(1.5e9) },
    memory: { timestamp, workingSetBytes: value(3_000), rssBytes: value(2_000) },
    writableLayer: { timestamp, usedBytes: value(100), inodesUsed: value(2) },
  } as unknown as ContainerStats;
}

function createHarness(more: Partial<StatsProviderDeps> = {}) {
  const clock = new VirtualClock();
  const requests: string[] = [];
  const subjects: PodSubject[] = [subject];
  const files: Record<string, string> = {
    '/proc/meminfo': 'MemTotal: 1000 kB\nMemFree: 300 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n',
    '/proc/stat': 'cpu 1 2 3\nbtime 1700000000\n',
    '/proc/loadavg': '0.1 0.2 0.3 2/345 999\n',
    '/proc/sys/kernel/pid_max': '4194304\n',
    '/proc/sys/kernel/threads-max': '60000\n',
    '/proc/self/net/dev': ' eth0: 1 0 0 0 0 0 0 0 2 0 0 0 0 0\n',
    '/proc/11/net/dev': ' eth0: 7 0 0 0 0 0 0 0 8 0 0 0 0 0\n',
    '/proc/pressure/cpu': 'some avg10=1.50 avg60=0.00 avg300=0.00 total=30\n',
    '/c/cpu.stat': 'usage_usec 10000000\n',
    '/c/kubepods/cpu.stat': 'usage_usec 3000000\n',
    '/c/kubepods/podu1/cpu.stat': 'usage_usec 2000000\n',
    '/c/kubepods/podu1/memory.current': '5000\n',
    '/c/kubepods/podu1/memory.stat': 'inactive_file 1000\n',
    '/c/kubepods/podu1/memory.pressure':
      'some avg10=0.00 avg60=0.00 avg300=0.00 total=4\nfull avg10=2.00 avg60=0.00 avg300=0.00 total=3\n',
    '/c/kubepods/podu1/s1/cgroup.procs': '11\n',
    '/c/kubepods/podu1/c1/cpu.stat': 'usage_usec 1500000\n',
    '/c/kubepods/podu1/c1/memory.current': '4000\n',
    '/c/kubepods/podu1/c1/memory.stat': 'inactive_file 1000\nanon 2000\n',
    '/c/kubepods/podu1/c1/memory.swap.current': '1000\n',
    '/c/kubepods/podu1/c1/memory.swap.max': '1500\n',
    '/c/kubepods/podu1/c1/cgroup.procs': '12\n13\n14\n',
  };
  const usage = { usedBytes: 30, inodesUsed: 1, isComplete: true };
  const parts = { main: { usedBytes: 30, inodesUsed: 1 }, '': { usedBytes: 4, inodesUsed: 1 } };
  const provider = new StatsProvider({
    clock,
    nodeName: 'n1',
    host: {
      ...hostOf(files),
      readSync: (path) => {
        if (path === '/proc/meminfo') requests.push('kernel');
        return files[path];
      },
      subdirectories: async (path) => (path === '/c/kubepods/podu1' ? ['c1', 's1'] : []),
    },
    layout: { version: 2, root: '/c' },
    pods: () => subjects,
    systemCgroups: { pods: '/kubepods' },
    rootDir: '/root',
    podLogsDir: '/logs',
    cri: {
      listContainerStats: async () => {
        requests.push('runtime');
        return { stats: [statsOf(clock)] };
      },
      imageFsInfo: async () => ({ imageFilesystems: [], containerFilesystems: [] }),
    } as unknown as StatsProviderDeps['cri'],
    machine: {
      kernel: '6.1',
      self: () => own,
      space: async () => disk,
      openFiles: async () => ({ all: 0, sockets: 0 }),
      directories: {
        usagesOf: async (trees) => {
          requests.push(...trees.map(({ path }) => path));
          return trees.map((tree) => ({
            kind: 'counted',
            space: disk,
            usage: tree.parts === undefined ? { ...usage, usedBytes: 5 } : { ...usage, parts },
          }));
        },
      },
    },
    ...more,
  });
  return { clock, files, asked: requests, subjects, provider };
}

/** Returns the field of a stats object at a path such as `node.cpu.time`. */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((found, key) => Object(found)[key], value);
}

test('the summary contains the node, its pods and the containers of pods', async () => {
  const { provider } = createHarness();
  const summary = summaryOf(await provider.stats('all', signal), 'all');
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
    'node.rlimit.maxpid': 60_000,
    'node.cpu.psi.some.avg10': 1.5,
    'node.rlimit.curproc': 345,
    'node.systemContainers.0.name': 'kubelet',
    'node.systemContainers.1.name': 'pods',
    'pods.0.podRef.name': 'web',
    'pods.0.podRef.namespace': 'default',
    'pods.0.podRef.uid': 'u1',
    'pods.0.startTime': started,
    'pods.0.cpu.usageCoreNanoSeconds': 2e9,
    'pods.0.memory.workingSetBytes': 4_000,
    'pods.0.network.rxBytes': 7,
    'pods.0.memory.psi.full.total': 3,
    'pods.0.ephemeral-storage.usedBytes': 100 + 30 + 4 + 2 * 5,
    'pods.0.ephemeral-storage.inodesUsed': 2 + 1 + 1 + 2 * 1,
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

test('a summary request for only CPU and memory reads no other stats', async () => {
  const { provider, asked } = createHarness();
  const summary = summaryOf(await provider.stats('cpu-and-memory', signal), 'cpu-and-memory');
  for (const path of ['node.fs', 'node.network', 'pods.0.ephemeral-storage']) {
    assert.equal(at(summary, path), undefined, path);
  }
  for (const path of ['node.cpu.time', 'node.memory.time', 'pods.0.cpu.time']) {
    assert.notEqual(at(summary, path), undefined, path);
  }
  assert.deepEqual(asked, ['kernel']);
});

test('concurrent callers share one read of the stats and its result; a caller that needs current stats starts a new read', async () => {
  const { provider, clock, asked, subjects } = createHarness();
  const looks = () => asked.splice(0).filter((what) => what === 'kernel').length;
  await Promise.all([1, 2, 3].map(() => provider.stats('cpu-and-memory', signal)));
  assert.equal(looks(), 1);
  await clock.advance(1_000);
  await provider.stats('cpu-and-memory', signal);
  assert.equal(looks(), 1, 'unknown rates are requested soon');
  await clock.advance(9_000);
  const before = (await provider.stats('cpu-and-memory', signal)).usage.atMs;
  assert.deepEqual([looks(), clock.now() - before], [0, 9_000]);
  await provider.stats('cpu-and-memory', signal, { maxAgeMs: 0 });
  assert.equal(looks(), 1);
  const { usage, disk: node } = await provider.node(signal, { maxAgeMs: 0 });
  assert.deepEqual([looks(), usage.atMs, node?.atMs], [1, clock.now(), clock.now()]);
  await clock.advance(1_000);
  subjects.push({ ...subject, uid: 'u2', cgroup: '', containers: [] });
  await provider.stats('cpu-and-memory', signal);
  assert.equal(looks(), 0, 'none of its containers runs');
  subjects.push({ ...subject, uid: 'u3', containers: [{ ...main, id: 'c3' }] });
  assert.equal((await provider.stats('cpu-and-memory', signal)).pods.length, 3, 'a new pod is included');
  await clock.advance(1_000);
  const { pods } = await provider.stats('all', signal, { maxAgeMs: 0 });
  assert.equal(pods[0]?.containers[0]?.logs?.atMs, clock.now());
});

test("uses the runtime's stats for values that the kernel does not report", async () => {
  const { provider, asked } = createHarness({ layout: { version: 2, root: '/elsewhere' } });
  const { pods } = await provider.stats('cpu-and-memory', signal);
  assert.deepEqual(asked, ['kernel', 'runtime']);
  const [container] = pods[0]?.containers ?? [];
  assert.deepEqual([container?.usage.cpuNanos, container?.usage.memory?.rssBytes], [1.5e9, 2_000]);
});

test('queries a slow runtime once for the stats of all containers', async () => {
  const slowMs = 13_000;
  let requestCount = 0;
  const cri = {
    async listContainerStats() {
      requestCount++;
      await clock.sleep(slowMs, signal);
      return { stats: [statsOf(clock)] };
    },
    imageFsInfo: async () => ({ imageFilesystems: [], containerFilesystems: [] }),
  } as unknown as StatsProviderDeps['cri'];
  const { provider, files, clock } = createHarness({ cri });
  delete files['/c/kubepods/podu1/c1/memory.current'];
  const found = provider.stats('all', signal, { maxAgeMs: 0 });
  await clock.advance(slowMs);
  const [container] = (await found).pods[0]?.containers ?? [];
  assert.deepEqual(
    [container?.usage.memory?.rssBytes, container?.rootfs?.usedBytes, requestCount],
    [2_000, 100, 1],
  );
});

test('closes all kernel files after a failed read of the stats', async () => {
  const open = new Set<string>();
  const { provider, files } = createHarness({
    cri: { listContainerStats: () => Promise.reject(new Error('silence')) } as never,
    host: {
      ...hostOf({}),
      readSync: (path) => files[path],
      openFiles: (directory) => ({
        read(name) {
          open.add(directory);
          return files[`${directory}/${name}`];
        },
        close: () => void open.delete(directory),
      }),
      subdirectories: async () => ['c1', 's1'],
    },
  });
  await provider.stats('cpu-and-memory', signal, { maxAgeMs: 0 });
  assert.ok(open.size > 0);
  delete files['/c/kubepods/podu1/c1/memory.current'];
  await assert.rejects(provider.stats('cpu-and-memory', signal, { maxAgeMs: 0 }), { message: 'silence' });
  assert.deepEqual([...open], []);
});

test("reports the node's stats without pods when the runtime does not respond", async () => {
  const silent = () => Promise.reject(new Error('silence'));
  const cri = { listContainerStats: silent, imageFsInfo: silent };
  const { provider } = createHarness({ cri });
  const { images, disk: node } = await provider.node(signal);
  assert.deepEqual([images, node?.capacityBytes], [undefined, 10_000]);
  await assert.rejects(provider.stats('all', signal), { message: 'silence' });
});

test('reads the node stats without waiting for an unresponsive runtime', async () => {
  const never = () => new Promise<never>(() => {});
  const { provider, clock, files } = createHarness({
    cri: { listContainerStats: never, imageFsInfo: never },
  });
  files['/proc/meminfo'] = 'MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 600 kB\n';
  const found = provider.node(signal, { maxAgeMs: 0 });
  await clock.advance(5_000);
  const { images, disk: node, machineMemory } = await found;
  assert.deepEqual([images, node?.capacityBytes], [undefined, 10_000]);
  assert.deepEqual(machineMemory, { totalBytes: 1_000 * 1_024, availableBytes: 600 * 1_024 });
});

test('returns the oldest time at which the runtime measured the layer sizes', async () => {
  const { provider, clock, subjects } = createHarness();
  subjects.push({ ...subject, uid: 'u2', containers: [{ ...main, id: 'c2' }] });
  const countedOf = (...uids: readonly string[]) => provider.layersCountedAtMs(new Set(uids), signal);
  const first = clock.now();
  assert.deepEqual([await countedOf('u1', 'u2'), await countedOf('u2')], [first, Number.POSITIVE_INFINITY]);
  await clock.advance(2_000);
  assert.equal(await countedOf('u1'), first + 2_000);
});

test('measures only the volumes of the requested pods again', async () => {
  const ages: (number | undefined)[] = [];
  const { provider, subjects } = createHarness({
    volumes: {
      retain() {},
      peek: () => undefined,
      async of(_pod, _signal, maxAgeMs) {
        ages.push(maxAgeMs);
        return [];
      },
    },
  });
  subjects.push({ ...subject, uid: 'u2' });
  await provider.stats('all', signal, { volumesMaxAgeMs: 0, volumesOf: new Set(['u2']) });
  await provider.stats('all', signal, { volumesMaxAgeMs: 0 });
  assert.deepEqual(ages, [undefined, 0, 0, 0]);
});

test('reports CPU rates from the second sample on', async () => {
  const { provider, clock, files } = createHarness();
  const look = async () => (await provider.stats('cpu-and-memory', signal)).usage.nanoCores;
  assert.equal(await look(), undefined);
  await clock.advance(10_000);
  files['/c/cpu.stat'] = 'usage_usec 15000000\n';
  assert.equal(await look(), 5e8);
  assert.equal(await look(), 5e8, 'a sample immediately afterwards keeps the rate');
});

test('a counter that was reset has no rate, and removed counters are dropped', () => {
  const rates = new UsageRates();
  const look = (atMs: number, nanos: number) => {
    const pass = rates.begin();
    const rate = pass.record('a', atMs, nanos);
    pass.end();
    return rate;
  };
  assert.equal(look(0, 100), undefined);
  assert.equal(look(2_000, 300), 100);
  assert.equal(look(4_000, 50), undefined);
  rates.begin().end();
  assert.equal(look(6_000, 500), undefined);
  assert.equal(look(8_000, 900), 200);
  // From this sample on, the clock is set back by hours.
  assert.equal(look(-9_000_000, 1_000), 200);
  assert.equal(look(-8_998_000, 1_600), 300);
});

test('sums the usage of the containers for a pod without a cgroup', async () => {
  const { provider } = createHarness({ pods: () => [{ ...subject, cgroup: '' }] });
  const { pods } = await provider.stats('cpu-and-memory', signal);
  assert.deepEqual([pods[0]?.usage.cpuNanos, pods[0]?.usage.memory?.workingSetBytes], [1.5e9, 3_000]);
});

async function pageOf(stats: NodeStats | undefined): Promise<string> {
  const page = new MetricRegistry({ onError: () => {} });
  page.collect(() => resourceMetrics(stats));
  return await page.expose(signal);
}

test('/metrics/resource contains the node, each pod and each container with the time of the sample', async () => {
  const { provider, clock } = createHarness();
  const page = await pageOf(await provider.stats('cpu-and-memory', signal));
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

test('volumes are reported with their claims, and ephemeral volumes count as ephemeral storage', async () => {
  const space = { capacityBytes: 1_000, availableBytes: 400, inodes: 100, inodesFree: 90 };
  const held = { usedBytes: 600, inodesUsed: 10, atMs: 0 };
  const { provider } = createHarness({
    volumes: {
      retain() {},
      peek: () => undefined,
      of: async () => [
        { ...space, ...held, name: 'scratch', isScratch: true },
        { ...space, ...held, name: 'data', isScratch: false, claim: { namespace: 'ns', name: 'c' } },
      ],
    },
  });
  const { signal } = new AbortController();
  const all = JSON.parse(JSON.stringify(summaryOf(await provider.stats('all', signal), 'all')));
  const { time: _time, ...first } = all.pods[0].volume[0];
  assert.deepEqual(first, { ...space, usedBytes: 600, inodesUsed: 10, name: 'scratch' });
  assert.deepEqual(all.pods[0].volume[1].pvcRef, { name: 'c', namespace: 'ns' });
  assert.deepEqual(
    [all.pods[0]['ephemeral-storage'].usedBytes, all.pods[0]['ephemeral-storage'].inodesUsed],
    [600 + 100 + 30 + 4 + 2 * 5, 10 + 2 + 1 + 1 + 2 * 1],
  );
  const few = await provider.stats('cpu-and-memory', signal);
  assert.equal(few.pods[0]?.volumes, undefined);
});
