import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExposition } from '../../test/fakes/exposition.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { type CgroupHost, type CgroupLayout, MetricRegistry } from '../lib/index.ts';
import { cadvisorMetrics } from './cadvisor-metrics.ts';
import type { PodSubject } from './pod-subjects.ts';

const { signal } = new AbortController();
const createdAtMs = 1_700_000_000_000;
const web: PodSubject = {
  uid: 'u1',
  name: 'web',
  namespace: 'default',
  pod: undefined,
  startTime: undefined,
  cgroup: '/kubepods/podu1',
  network: 'pod',
  sandbox: { id: 'aaa', createdAtMs },
  containers: [{ id: 'bbb', name: 'main', image: 'busybox:1', createdAtMs }],
};

const disk = {
  capacityBytes: 9_000,
  availableBytes: 5_000,
  usedBytes: 4_000,
  inodes: 100,
  inodesFree: 60,
  inodesUsed: 40,
};

async function pageOf(layout: CgroupLayout, files: Readonly<Record<string, string>>): Promise<string> {
  const none = () => Promise.reject(new Error('these cgroup files are read-only'));
  const host: CgroupHost = {
    read: async (path) => files[path] ?? Promise.reject(new Error(`there is no ${path}`)),
    readSync: (path) => files[path],
    subdirectories: async (path) => (path.endsWith('/podu1') ? ['cri-containerd-aaa.scope', 'bbb'] : []),
    mountinfo: async () => '22 1 8:0 / / rw - ext4 /dev/sda rw\n',
    fsType: none,
    write: none,
    mkdir: none,
    rmdir: none,
    kill() {},
  };
  const page = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const sources = {
    clock: new VirtualClock(),
    host,
    layout,
    pods: () => [web],
    otherCgroups: ['/'],
    machine: { openFiles: async () => ({ all: 3, sockets: 1 }), kernel: '6.1' },
    written: async () => ({
      layers: new Map([['bbb', { atMs: 0, usedBytes: 77, inodesUsed: 1 }]]),
      disk,
      disks: new Map([['/root', disk]]),
    }),
    capacity: { cores: 2, memoryBytes: 4_096, swapBytes: 0 },
  };
  page.collect((inner) => cadvisorMetrics(sources, inner));
  return await page.expose(signal);
}

/** Returns the value of the metric that has all the given labels. */
function value(page: string, name: string, labels: Readonly<Record<string, string>>): number | undefined {
  const line = page.split('\n').find((each) => {
    const words = Object.entries(labels).map(([key, text]) => `${key}="${text}"`);
    return each.startsWith(`${name}{`) && words.every((word) => each.includes(word));
  });
  return line === undefined ? undefined : Number(line.split('} ')[1]?.split(' ')[0]);
}

const main = {
  container: 'main',
  id: '/kubepods/podu1/bbb',
  image: 'busybox:1',
  name: 'bbb',
  namespace: 'default',
  pod: 'web',
};
const sandbox = { container: 'POD', name: 'aaa', pod: 'web' };
const podRow = {
  container: '',
  id: '/kubepods/podu1',
  image: '',
  name: '',
  namespace: 'default',
  pod: 'web',
};

test('with cgroups v2 every cgroup has its metrics with all labels, which are empty when unknown', async () => {
  const dir = '/c/kubepods/podu1/bbb';
  const page = await pageOf(
    { version: 2, root: '/c' },
    {
      '/proc/diskstats':
        '   8       0 sda 5 1 400 2000 7 2 800 3000 1 1500 5000 0 0 0 0 0 0\n   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n',
      '/c/cpu.stat': 'usage_usec 9000000\n',
      '/c/memory.stat': 'anon 300\nfile 500\ninactive_file 100\n',
      '/proc/self/net/dev': ' eth0: 900 8 0 0 0 0 0 0 700 6 0 0 0 0\n veth1: 5 5 0 0 0 0 0 0 5 5 0 0 0 0\n',
      '/c/kubepods/podu1/memory.current': '700\n',
      [`${dir}/cpu.stat`]:
        'usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_throttled 3\nthrottled_usec 4000000\n',
      [`${dir}/cpu.max`]: '50000 100000\n',
      [`${dir}/cpu.weight`]: '100\n',
      [`${dir}/memory.current`]: '1000\n',
      [`${dir}/memory.stat`]:
        'anon 300\nfile 500\ninactive_file 400\nfile_mapped 20\npgfault 7\npgmajfault 1\n',
      [`${dir}/memory.max`]: '5000\n',
      [`${dir}/memory.min`]: '64\n',
      [`${dir}/memory.low`]: '128\n',
      [`${dir}/memory.events`]: 'low 0\nmax 2\noom_kill 1\n',
      [`${dir}/io.stat`]: '8:0 rbytes=11 wbytes=12 rios=1 wios=2\n',
      [`${dir}/cpu.pressure`]:
        'some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\nfull avg10=0.00 total=1000000\n',
      [`${dir}/pids.current`]: '4\n',
      [`${dir}/pids.max`]: 'max\n',
      [`${dir}/cgroup.procs`]: '10\n11\n',
      '/c/kubepods/podu1/cri-containerd-aaa.scope/cgroup.procs': '9\n',
      '/proc/10/limits': 'Max open files            1024                 4096                 files\n',
      '/proc/9/limits': 'Max open files            unlimited            unlimited            files\n',
      '/proc/9/net/dev': ' eth0: 100 2 0 1 0 0 0 0 200 3 0 0 0 0\n',
    },
  );
  const expected = {
    container_cpu_usage_seconds_total: 2.5,
    container_cpu_user_seconds_total: 2,
    container_cpu_cfs_throttled_seconds_total: 4,
    container_spec_cpu_quota: 50_000,
    container_spec_cpu_shares: 2_597,
    container_spec_memory_reservation_limit_bytes: 64,
    container_memory_working_set_bytes: 600,
    container_memory_rss: 300,
    container_memory_failcnt: 2,
    container_oom_events_total: 1,
    container_spec_memory_limit_bytes: 5_000,
    container_fs_writes_bytes_total: 12,
    container_pressure_cpu_waiting_seconds_total: 3,
    container_threads: 4,
    container_threads_max: 0,
    container_processes: 2,
    container_start_time_seconds: 1_700_000_000,
    container_file_descriptors: 6,
    container_sockets: 2,
    container_ulimits_soft: 1_024,
    container_fs_usage_bytes: 77,
    container_fs_limit_bytes: 9_000,
  };
  for (const [name, wanted] of Object.entries(expected)) assert.equal(value(page, name, main), wanted, name);
  assert.equal(value(page, 'container_fs_reads_total', { ...main, device: '/dev/sda' }), 1);
  assert.equal(value(page, 'container_memory_usage_bytes', podRow), 700);
  assert.equal(value(page, 'container_cpu_usage_seconds_total', { id: '/', pod: '', cpu: 'total' }), 9);
  assert.equal(value(page, 'container_ulimits_soft', sandbox), -1, 'unlimited');
  for (const line of [
    'container_memory_failcnt counter',
    'container_memory_failures_total counter',
    'container_fs_inodes_total gauge',
    'container_fs_usage_bytes gauge',
  ])
    assert.match(page, new RegExp(`^# TYPE ${line}$`, 'm'));
  const network = { ...sandbox, interface: 'eth0' };
  assert.equal(value(page, 'container_network_receive_bytes_total', network), 100);
  assert.equal(value(page, 'container_network_receive_packets_dropped_total', network), 1);
  const machine = {
    container_memory_usage_bytes: 800,
    container_memory_working_set_bytes: 700,
    container_spec_memory_limit_bytes: 4_096,
  };
  for (const [name, wanted] of Object.entries(machine))
    assert.equal(value(page, name, { id: '/' }), wanted, name);
  const received = 'container_network_receive_bytes_total';
  assert.equal(value(page, received, { id: '/', interface: 'eth0' }), 900);
  assert.equal(
    value(page, received, { id: '/', interface: 'veth1' }),
    undefined,
    'labelled with its container',
  );
  parseExposition(page);
  const root = { id: '/', device: '/dev/sda' };
  const disks = {
    container_fs_limit_bytes: 9_000,
    container_fs_usage_bytes: 4_000,
    container_fs_inodes_total: 100,
    container_fs_inodes_free: 60,
    container_fs_sector_reads_total: 400,
    container_fs_read_seconds_total: 2,
    container_fs_writes_merged_total: 2,
    container_fs_io_current: 1,
    container_fs_io_time_seconds_total: 1.5,
    container_fs_io_time_weighted_seconds_total: 5,
  };
  for (const [name, wanted] of Object.entries(disks)) assert.equal(value(page, name, root), wanted, name);
  assert.doesNotMatch(page, /loop0/, 'devices without mounts are omitted');
  assert.match(page, /^machine_cpu_cores 2$/m);
  assert.match(page, /^container_scrape_error 0$/m);
});

test('with cgroups v1 the metrics are the same as with v2, although read from several trees', async () => {
  const controllers = new Map([
    ['cpu', '/cpu'],
    ['cpuacct', '/cpu'],
    ['memory', '/memory'],
    ['blkio', '/blkio'],
    ['pids', '/pids'],
  ]);
  const at = 'kubepods/podu1/bbb';
  const page = await pageOf(
    { version: 1, controllers, unified: undefined },
    {
      [`/cpu/${at}/cpuacct.usage`]: '1500000000\n',
      [`/cpu/${at}/cpuacct.stat`]: 'user 120\nsystem 30\n',
      [`/cpu/${at}/cpu.shares`]: '1024\n',
      [`/cpu/${at}/cpu.cfs_quota_us`]: '-1\n',
      [`/memory/${at}/memory.usage_in_bytes`]: '1000\n',
      [`/memory/${at}/memory.stat`]: 'pgfault 1\ntotal_inactive_file 100\ntotal_rss 5\ntotal_pgfault 9\n',
      [`/memory/${at}/memory.limit_in_bytes`]: '9223372036854771712\n',
      [`/blkio/${at}/blkio.throttle.io_service_bytes`]: '8:0 Read 5\n8:0 Write 6\nTotal 11\n',
    },
  );
  assert.equal(value(page, 'container_cpu_usage_seconds_total', main), 1.5);
  assert.equal(value(page, 'container_cpu_system_seconds_total', main), 0.3);
  assert.equal(value(page, 'container_spec_cpu_shares', main), 1_024);
  assert.equal(value(page, 'container_spec_cpu_quota', main), undefined, 'unlimited is not reported as -1');
  assert.equal(value(page, 'container_memory_working_set_bytes', main), 900);
  assert.equal(value(page, 'container_spec_memory_limit_bytes', main), 0, 'no limit');
  assert.equal(value(page, 'container_memory_failures_total', { ...main, scope: 'hierarchy' }), 9);
  assert.equal(value(page, 'container_blkio_device_usage_total', { ...main, operation: 'Write' }), 6);
});
