import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { PodSpec } from '../../src/kinds/index.ts';
import { detectCgroupLayout, type MetricRegistry, realCgroupHost } from '../../src/lib/index.ts';
import type { PodUsage, StatsEndpoints, StatsProvider } from '../../src/stats/index.ts';

import { type ExposedSample, noPromtool, parseExposition, promtoolSays } from '../fakes/exposition.ts';
import { InProcessNode } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const { signal } = new AbortController();
const host = realCgroupHost();
const megabyte = 2 ** 20;

/** A container script that exits once, so that the stats are those of the restarted container. */
const restarting =
  'if [ -e /scratch/again ]; then echo here we go; head -c 50000 /dev/zero > /outside; ' +
  'head -c 30000 /dev/zero > /scratch/file; while true; do i=$((i+1)); [ $((i % 20000)) = 0 ] && sleep 0.2; done; ' +
  'else touch /scratch/again; fi';

const scratch: Partial<PodSpec> = { restartPolicy: 'Always', volumes: [{ name: 'scratch', emptyDir: {} }] };
const main = {
  script: restarting,
  volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
  resources: { limits: { memory: '80M' } },
};

const readinessProbe = { exec: { command: ['true'] }, periodSeconds: 1 };

/** The value at a path of keys in the response. */
function at(of: unknown, ...way: readonly (string | number)[]): unknown {
  return way.reduce<unknown>((found, key) => Object(found)[key], of);
}

function listAt(of: unknown, ...way: readonly (string | number)[]): readonly unknown[] {
  const found = at(of, ...way);
  return Array.isArray(found) ? found : [];
}

describe('stats of a node and its pods', { skip: skipReason(), timeout: 300_000 }, () => {
  let node: InProcessNode;
  let provider: StatsProvider;
  let pages: StatsEndpoints;
  let metrics: MetricRegistry;

  before(async () => {
    const runtimeSocket = (dataDir: string) => join(dataDir, 'containerd/containerd.sock');
    node = await InProcessNode.open({
      settings: (dataDir) => ({ runtimeSocket: runtimeSocket(dataDir) }),
      aroundDeps: (deps) => {
        metrics = deps.metrics;
        return deps;
      },
    });
    await node.put({
      one: { containers: { main }, spec: scratch },
      two: { containers: { main, side: 'sleep 1000' }, spec: scratch },
      still: { containers: { main: { script: 'exec sleep 1000', readinessProbe } } },
    });
    for (const name of ['one', 'two'])
      await node.podIs(name, 'started again', ({ containerStatuses = [] }) =>
        containerStatuses.some(
          ({ restartCount, state }) => restartCount === 1 && state?.running !== undefined,
        ),
      );
    await node.podIs('still', 'running', ({ phase }) => phase === 'Running');
    const [opened, shown] = [
      await node.kubelet.runtime.statistics.provider(),
      await node.kubelet.runtime.statistics.pages(),
    ];
    assert.ok(opened && shown);
    [provider, pages] = [opened, shown];
    // The stats are complete only after two samples, which rates need, and after the runtime has
    // measured the writable layers.
    await eventually(
      'all stats to be complete',
      async () => {
        const { pods } = await provider.stats('all', signal, { maxAgeMs: 1_000, volumesMaxAgeMs: 1_000 });
        const isWhole = ({ name, containers, volumes = [], usage }: PodUsage) =>
          usage.nanoCores !== undefined &&
          containers.every(({ rootfs, logs }) => rootfs !== undefined && logs !== undefined) &&
          (name.startsWith('still') ||
            (containers.some(({ rootfs }) => (rootfs?.usedBytes ?? 0) > 50_000) &&
              (volumes[0]?.usedBytes ?? 0) > 30_000));
        const { images } = await provider.node(signal, { maxAgeMs: 1_000 });
        const isCounted = (images?.own.usedBytes ?? 0) > 0;
        return isCounted && pods.length === 3 && pods.every(isWhole) ? true : undefined;
      },
      120_000,
    );
  });

  after(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  async function summary(): Promise<unknown> {
    return JSON.parse(JSON.stringify(await pages.summary('all', signal)));
  }

  /** A description of each stat that is not within its bounds. */
  function outside(of: unknown, bounds: Readonly<Record<string, readonly [number, number]>>): string[] {
    return Object.entries(bounds).flatMap(([key, [least, most]]) => {
      const value = at(of, key);
      const isThere = typeof value === 'number' && value >= least && value <= most;
      return isThere ? [] : [`${key} is ${JSON.stringify(value)}, not from ${least} to ${most}`];
    });
  }

  function isRecent(time: unknown): boolean {
    const ageMs = Date.now() - Date.parse(String(time));
    return ageMs > -2_000 && ageMs < 60_000;
  }

  const capacity: readonly [number, number] = [100 * megabyte, 10 * 2 ** 40];
  const inodes: readonly [number, number] = [1e4, 1e9];
  const files = { availableBytes: capacity, capacityBytes: capacity, inodesFree: inodes, inodes };

  it('the summary includes all fields of the Go kubelet for pods', async () => {
    const pods = listAt(await summary(), 'pods');
    const found = pods.filter((pod) => /^(?:one|two)-/.test(String(at(pod, 'podRef', 'name'))));
    assert.equal(found.length, 2);
    for (const pod of found) {
      const container = listAt(pod, 'containers').find((each) => String(at(each, 'name')) === 'main');
      const memory = {
        availableBytes: [1_000, 80 * megabyte],
        usageBytes: [10_000, 80 * megabyte],
        workingSetBytes: [10_000, 80 * megabyte],
        rssBytes: [1_000, 80 * megabyte],
        majorPageFaults: [0, 1e9],
      } as const;
      const cpu = { usageNanoCores: [10_000, 1e9], usageCoreNanoSeconds: [1e7, 1e12] } as const;
      const counted = { inodesUsed: [0, 1e8] } as const;
      const problems = [
        ...outside(at(container, 'cpu'), cpu),
        ...outside(at(container, 'memory'), { ...memory, pageFaults: [100, 1e9] }),
        ...outside(at(container, 'swap'), { swapUsageBytes: [0, 0] }),
        ...outside(at(container, 'rootfs'), { ...files, ...counted, usedBytes: [50_000, 10 * megabyte] }),
        ...outside(at(container, 'logs'), { ...files, ...counted, usedBytes: [1, 10 * megabyte] }),
        ...outside(at(pod, 'cpu'), cpu),
        ...outside(at(pod, 'memory'), { ...memory, availableBytes: [0, 2 ** 45] }).filter(
          // The pod has no memory limit, because only one of its two containers has one.
          (problem) => !problem.startsWith('availableBytes'),
        ),
        ...outside(at(pod, 'volume', 0), { ...files, ...counted, usedBytes: [30_000, megabyte] }),
        ...outside(at(pod, 'ephemeral-storage'), {
          ...files,
          ...counted,
          usedBytes: [80_000, 21 * megabyte],
        }),
        ...outside(at(pod, 'process_stats'), { process_count: [2, 10] }),
        ...outside(at(pod, 'network'), {
          rxBytes: [1, 10 * megabyte],
          rxErrors: [0, 1_000],
          txErrors: [0, 1_000],
        }),
      ];
      assert.deepEqual(problems, [], String(at(pod, 'podRef', 'name')));
      assert.equal(at(pod, 'network', 'name'), 'eth0');
      assert.ok(Number(listAt(pod, 'network', 'interfaces').length) >= 1);
      for (const part of ['cpu', 'memory', 'rootfs', 'logs', 'swap'])
        assert.ok(isRecent(at(container, part, 'time')), part);
      assert.ok(isRecent(at(pod, 'ephemeral-storage', 'time')));
      assert.ok(Date.parse(String(at(container, 'startTime'))) > Date.now() - 600_000);
    }
  });

  it('the summary includes all fields of the Go kubelet for the node', async () => {
    const reported = at(await summary(), 'node');
    const whole = 2 ** 45;
    const problems = [
      ...outside(at(reported, 'cpu'), { usageNanoCores: [1e5, 1e12], usageCoreNanoSeconds: [1e9, 1e18] }),
      ...outside(at(reported, 'memory'), {
        availableBytes: [megabyte, whole],
        usageBytes: [10 * megabyte, whole],
        workingSetBytes: [10 * megabyte, whole],
        rssBytes: [1_000, whole],
      }),
      ...outside(at(reported, 'swap'), { swapUsageBytes: [0, whole], swapAvailableBytes: [0, whole] }),
      ...outside(at(reported, 'fs'), { ...files, usedBytes: [1_000, whole], inodesUsed: [1, 1e9] }),
      ...outside(at(reported, 'runtime', 'imageFs'), {
        ...files,
        usedBytes: [1_000, whole],
        inodesUsed: [1, 1e9],
      }),
      ...outside(at(reported, 'runtime', 'containerFs'), {
        ...files,
        usedBytes: [1_000, whole],
        inodesUsed: [1, 1e9],
      }),
      ...outside(at(reported, 'rlimit'), { maxpid: [100, 1e8], curproc: [10, 1e8] }),
    ];
    assert.deepEqual(problems, []);
    for (const part of ['cpu', 'memory', 'swap', 'fs', 'rlimit', 'network'])
      assert.ok(isRecent(at(reported, part, 'time')), part);
    const system = listAt(reported, 'systemContainers');
    assert.deepEqual(system.map((each) => String(at(each, 'name'))).sort(), ['kubelet', 'pods', 'runtime']);
    for (const each of system) {
      const least = String(at(each, 'name')) === 'pods' ? 0 : 1_000;
      assert.deepEqual(
        outside(at(each, 'memory'), { workingSetBytes: [10_000, whole], pageFaults: [least, 1e12] }),
        [],
      );
      assert.deepEqual([at(each, 'rootfs'), at(each, 'logs')], [undefined, undefined]);
    }
  });

  it('CPU and memory stats of a pod lie between the values of its cgroup files before and after the request', async () => {
    const layout = await detectCgroupLayout(host);
    const pod = node.pod('still');
    assert.ok(pod);
    const path = node.kubelet.endpoints.cgroupOf(pod);
    const [file, scale] =
      layout.version === 2
        ? [join(layout.root, path, 'cpu.stat'), 1_000]
        : [join(layout.controllers.get('cpuacct') ?? '', path, 'cpuacct.usage'), 1];
    const memory = layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
    const usage = layout.version === 2 ? 'memory.current' : 'memory.usage_in_bytes';
    const inactive = layout.version === 2 ? 'inactive_file' : 'total_inactive_file';
    const read = () => {
      const stat = readFileSync(join(memory, path, 'memory.stat'), 'utf8');
      const cold = Number(new RegExp(`^${inactive} (\\d+)$`, 'm').exec(stat)?.[1]);
      const workingSet = Number(readFileSync(join(memory, path, usage), 'utf8')) - cold;
      const cpu = Number(/\d+/.exec(readFileSync(file, 'utf8').replace(/^usage_usec /, ''))?.[0]) * scale;
      return { cpu, workingSet };
    };
    const first = read();
    const { pods } = await provider.stats('cpu-and-memory', signal, { maxAgeMs: 0 });
    const last = read();
    const reported = pods.find(({ uid }) => uid === pod.metadata.uid)?.usage;
    assert.ok(
      reported?.cpuNanos !== undefined && reported.cpuNanos >= first.cpu && reported.cpuNanos <= last.cpu,
    );
    const [least, most] = [first.workingSet, last.workingSet].toSorted((a, b) => a - b);
    const given = reported.memory?.workingSetBytes ?? -1;
    assert.ok(
      given >= (least ?? 0) - 65_536 && given <= (most ?? 0) + 65_536,
      `${given} of ${least} to ${most}`,
    );
    assert.ok(first.workingSet > 0);
  });

  it('the available memory of the node is its capacity minus the working set of the root cgroup', async () => {
    const layout = await detectCgroupLayout(host);
    const memory = layout.version === 2 ? layout.root : (layout.controllers.get('memory') ?? '');
    const used = () => {
      const stat = readFileSync(join(memory, 'memory.stat'), 'utf8');
      const field = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1]);
      return layout.version === 2
        ? field('anon') + field('file') - field('inactive_file')
        : Number(readFileSync(join(memory, 'memory.usage_in_bytes'), 'utf8')) - field('total_inactive_file');
    };
    const first = used();
    const { usage } = await provider.node(signal, { maxAgeMs: 0 });
    const last = used();
    const { workingSetBytes = -1, availableBytes = -1 } = usage.memory ?? {};
    // The tolerance covers other processes that run during the test.
    const slack = 64 * megabyte;
    const [least, most] = [Math.min(first, last) - slack, Math.max(first, last) + slack];
    assert.ok(
      workingSetBytes >= least && workingSetBytes <= most,
      `${workingSetBytes} of ${least} to ${most}`,
    );
    assert.equal(availableBytes + workingSetBytes, totalmem());
  });

  function rowOf(
    samples: readonly ExposedSample[],
    name: string,
    container: string,
  ): ExposedSample | undefined {
    return samples.find(
      (each) =>
        each.name === name &&
        each.labels['container'] === container &&
        each.labels['pod']?.startsWith('one-') === true,
    );
  }

  it('the resource metrics page includes every metric with the time of each sample', async () => {
    const samples = parseExposition(await pages.resourceMetrics(signal));
    for (const name of ['cpu_usage_seconds_total', 'memory_working_set_bytes', 'swap_usage_bytes']) {
      const [ofNode] = samples.filter((each) => each.name === `node_${name}`);
      const ofPod = samples.filter((each) => each.name === `pod_${name}`);
      assert.equal(ofPod.length, 3);
      for (const each of [ofNode, ...ofPod, rowOf(samples, `container_${name}`, 'main')])
        assert.ok(
          isRecent(new Date(each?.timestampMs ?? 0).toISOString()),
          `${name} ${JSON.stringify(each)}`,
        );
    }
    const start = rowOf(samples, 'container_start_time_seconds', 'main');
    assert.ok(
      start !== undefined && start.timestampMs === undefined && start.value > Date.now() / 1_000 - 600,
    );
    assert.deepEqual(
      samples.filter((each) => each.name === 'resource_scrape_error').map(({ value }) => value),
      [0],
    );
  });

  it('the cadvisor metrics page uses the metric names and labels that dashboards expect', async () => {
    const samples = parseExposition(await pages.cadvisorMetrics(signal));
    const bounds: Readonly<Record<string, readonly [number, number]>> = {
      container_cpu_system_seconds_total: [0, 100],
      container_cpu_usage_seconds_total: [0.001, 100],
      container_cpu_user_seconds_total: [0, 100],
      container_file_descriptors: [0, 100],
      container_fs_usage_bytes: [50_000, megabyte],
      container_last_seen: [Date.now() / 1_000 - 60, Date.now() / 1_000 + 60],
      container_memory_cache: [0, 10 * megabyte],
      container_memory_failcnt: [0, 0],
      container_memory_failures_total: [0, 1e6],
      container_memory_mapped_file: [0, 1e7],
      container_memory_max_usage_bytes: [0, 80 * megabyte],
      container_memory_rss: [10_000, 80 * megabyte],
      container_memory_swap: [0, 0],
      container_memory_usage_bytes: [10_000, 80 * megabyte],
      container_memory_working_set_bytes: [10_000, 80 * megabyte],
      container_oom_events_total: [0, 0],
      container_processes: [1, 10],
      container_sockets: [0, 10],
      container_spec_cpu_period: [100_000, 100_000],
      container_spec_cpu_shares: [2, 2],
      container_spec_memory_limit_bytes: [79_953_920, 80_000_000],
      container_spec_memory_reservation_limit_bytes: [0, 0],
      container_spec_memory_swap_limit_bytes: [0, 80 * megabyte],
      container_start_time_seconds: [Date.now() / 1_000 - 600, Date.now() / 1_000 + 60],
      container_threads: [1, 10],
      container_threads_max: [0, 100_000],
      container_ulimits_soft: [0, 2 ** 30],
      container_blkio_device_usage_total: [0, 1e7],
      container_fs_reads_bytes_total: [0, 1e7],
      container_fs_reads_total: [0, 100],
      container_fs_writes_bytes_total: [0, 1e6],
      container_fs_writes_total: [0, 200],
    };
    const problems = Object.entries(bounds).flatMap(([name, [least, most]]) => {
      const value = rowOf(samples, name, 'main')?.value;
      return value !== undefined && value >= least && value <= most ? [] : [`${name} is ${value}`];
    });
    assert.deepEqual(problems, []);
    for (const each of samples.filter(({ name }) => /^container_(?!scrape)/.test(name)))
      for (const label of ['id', 'name', 'image', 'namespace', 'pod', 'container'])
        assert.ok(label in each.labels, `${each.name} without ${label}`);
    for (const way of ['receive', 'transmit'])
      for (const what of ['bytes', 'errors', 'packets', 'packets_dropped'])
        assert.ok(
          (rowOf(samples, `container_network_${way}_${what}_total`, 'POD')?.value ?? -1) >= 0,
          `${way} ${what}`,
        );
    const there = new Set(samples.map(({ name }) => name));
    for (const name of [
      'io_current',
      'io_time_seconds_total',
      'inodes_free',
      'inodes_total',
      'limit_bytes',
      'sector_writes_total',
    ])
      assert.ok(there.has(`container_fs_${name}`), name);
    for (const name of ['machine_cpu_cores', 'machine_memory_bytes', 'cadvisor_version_info'])
      assert.ok(there.has(name), name);
  });

  /** All metrics pages, each with the name of a metric that it must include. */
  async function everyPage(): Promise<readonly (readonly [string, string])[]> {
    return [
      ['kubelet_running_pods', await metrics.expose(signal)],
      ['prober_probe_total', await node.kubelet.runtime.probes.metrics.expose(signal)],
      ['container_cpu_usage_seconds_total', await pages.resourceMetrics(signal)],
      ['container_memory_working_set_bytes', await pages.cadvisorMetrics(signal)],
    ];
  }

  it('CVE-2020-8557: what a container writes to its /etc/hosts counts as ephemeral storage of its pod', async () => {
    await node.put({
      hosts: { containers: { main: 'head -c 5000000 /dev/zero >> /etc/hosts; exec sleep 1000' } },
    });
    await node.podIs('hosts', 'running', ({ phase }) => phase === 'Running');
    await eventually('the file to be counted', async () => {
      const { pods } = await provider.stats('all', signal, { maxAgeMs: 1_000, volumesMaxAgeMs: 1_000 });
      assert.ok(pods.length > 0);
      const reported = listAt(await summary(), 'pods').find((pod) =>
        /^hosts-/.test(String(at(pod, 'podRef', 'name'))),
      );
      const used = at(reported, 'ephemeral-storage', 'usedBytes');
      return typeof used === 'number' && used > 5_000_000 ? true : undefined;
    });
    await node.take('hosts');
  });

  it('what a container writes to its termination log counts as ephemeral storage of its pod', async () => {
    await node.put({
      ending: { containers: { main: 'head -c 5000000 /dev/zero > /dev/termination-log; exec sleep 1000' } },
    });
    await node.podIs('ending', 'running', ({ phase }) => phase === 'Running');
    await eventually('the file to be counted', async () => {
      await provider.stats('all', signal, { maxAgeMs: 1_000, volumesMaxAgeMs: 1_000 });
      const reported = listAt(await summary(), 'pods').find((pod) =>
        /^ending-/.test(String(at(pod, 'podRef', 'name'))),
      );
      const used = at(reported, 'ephemeral-storage', 'usedBytes');
      return typeof used === 'number' && used > 5_000_000 ? true : undefined;
    });
    await node.take('ending');
  });

  it('every metrics page is in the Prometheus text format', async () => {
    await node.podIs('still', 'ready', ({ containerStatuses: [one] = [] }) => one?.ready === true);
    for (const [family, page] of await everyPage())
      assert.ok(
        parseExposition(page).some((each) => each.name === family),
        family,
      );
  });

  it('every metrics page passes promtool', { skip: noPromtool }, async () => {
    for (const [, page] of await everyPage()) promtoolSays(page);
  });
});
