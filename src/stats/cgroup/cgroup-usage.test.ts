import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CgroupFiles, field, readCgroupUsage } from './cgroup-usage.ts';
import { defaultInterface, hostMemory, interfacesIn } from './host-usage.ts';

/** Returns fake files of a cgroup whose memory and CPU files are in the given directories. */
function cgroup(files: Readonly<Record<string, string>>, memory: string, cpu = memory): CgroupFiles {
  const lookIn = (directory: string) => ({ read: (name: string) => files[`${directory}/${name}`] });
  return { version: memory === cpu ? 2 : 1, memory: lookIn(memory), cpu: lookIn(cpu) };
}

test('reads CPU and memory usage with cgroups v2', () => {
  const files = {
    '/sys/fs/cgroup/kubepods/cpu.stat': 'usage_usec 1500\nuser_usec 1000\n',
    '/sys/fs/cgroup/kubepods/memory.current': '1000\n',
    '/sys/fs/cgroup/kubepods/memory.stat': 'anon 300\ninactive_file 400\npgfault 7\npgmajfault 1\n',
    '/sys/fs/cgroup/kubepods/memory.max': '2000\n',
    '/sys/fs/cgroup/kubepods/memory.swap.current': '50\n',
    '/sys/fs/cgroup/kubepods/memory.swap.max': '80\n',
  };
  const usage = readCgroupUsage(cgroup(files, '/sys/fs/cgroup/kubepods'));
  assert.deepEqual(usage, {
    cpuNanos: 1_500_000,
    memory: {
      usageBytes: 1_000,
      workingSetBytes: 600,
      rssBytes: 300,
      pageFaults: 7,
      majorPageFaults: 1,
      availableBytes: 1_400,
    },
    swapBytes: 50,
    swapAvailableBytes: 30,
    pressure: undefined,
  });
  const unlimited = { ...files, '/sys/fs/cgroup/kubepods/memory.max': 'max\n' };
  const { memory } = readCgroupUsage(cgroup(unlimited, '/sys/fs/cgroup/kubepods'));
  assert.equal(memory?.availableBytes, undefined);
});

test('sums anonymous and file memory of the v2 root cgroup, which has no memory.current', () => {
  const files = { '/c/memory.stat': 'anon 300\nfile 500\ninactive_file 100\n' };
  const { memory } = readCgroupUsage(cgroup(files, '/c'));
  assert.deepEqual([memory?.usageBytes, memory?.workingSetBytes, memory?.rssBytes], [800, 700, 300]);
});

test('reads pressure only on request, and swap only on a machine with swap', () => {
  const text =
    'some avg10=1.25 avg60=0.50 avg300=0.10 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n';
  const files = { '/c/p/memory.current': '1\n', '/c/p/memory.swap.current': '9\n', '/c/p/io.pressure': text };
  const wish = { swap: 'none', pressure: 'collected' } as const;
  const usage = readCgroupUsage(cgroup(files, '/c/p'), wish);
  assert.deepEqual([usage.swapBytes, usage.pressure?.cpu], [0, undefined]);
  assert.deepEqual(usage.pressure?.io, {
    some: { total: 77, avg10: 1.25, avg60: 0.5, avg300: 0.1 },
    full: { total: 5, avg10: 0, avg60: 0, avg300: 0 },
  });
});

test('finds a field of a cgroup file only at the start of a line', () => {
  const text = 'total_rss 5\nrss 7\nrss_huge 9\nlast 11';
  assert.deepEqual(
    ['rss', 'rss_huge', 'total_rss', 'last', 'none', 'huge'].map((name) => field(name)(text)),
    [7, 9, 5, 11, undefined, undefined],
  );
});

test('reads CPU and memory usage with cgroups v1 and omits missing files', () => {
  const files = {
    '/c/cpu/p/cpuacct.usage': '42\n',
    '/c/memory/p/memory.usage_in_bytes': '100\n',
    '/c/memory/p/memory.stat': 'inactive_file 1\ntotal_inactive_file 150\ntotal_rss 60\ntotal_swap 9\n',
    '/c/memory/p/memory.limit_in_bytes': '9223372036854771712\n',
  };
  const usage = readCgroupUsage(cgroup(files, '/c/memory/p', '/c/cpu/p'));
  assert.equal(usage.cpuNanos, 42);
  assert.equal(usage.memory?.workingSetBytes, 0, 'never negative');
  assert.equal(usage.memory?.availableBytes, undefined, 'the maximum value means no limit');
  assert.deepEqual([usage.swapBytes, usage.swapAvailableBytes], [9, undefined]);
  const gone = readCgroupUsage(cgroup(files, '/c/memory/gone', '/c/cpu/gone'));
  assert.deepEqual(gone, {
    cpuNanos: undefined,
    memory: undefined,
    swapBytes: undefined,
    swapAvailableBytes: undefined,
  });
});

test("reads network interfaces in the kernel's order without the loopback interface", () => {
  const text = [
    'Inter-|   Receive                            |  Transmit',
    ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls',
    '    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0',
    ' veth0: 7000      10    2    0    0     0          0         0     6000      11    3    0    0     0',
    '  eth0: 5000      10    2    0    0     0          0         0     6000      11    3    0    0     0',
  ].join('\n');
  assert.deepEqual(interfacesIn(text), [
    {
      name: 'eth0',
      rxBytes: 5_000,
      rxPackets: 10,
      rxErrors: 2,
      rxDropped: 0,
      txBytes: 6_000,
      txPackets: 11,
      txErrors: 3,
      txDropped: 0,
    },
  ]);
  assert.deepEqual(
    interfacesIn(text, 'veth0').map(({ name }) => name),
    ['veth0', 'eth0'],
  );
  const route =
    'Iface\tDestination\tGateway \tFlags\neth1\t0000A8C0\t00000000\t0001\neth0\t00000000\t0100A8C0\t0003\n';
  assert.equal(defaultInterface(route), 'eth0');
});

test('uses the memory of the machine when no cgroup reports it', () => {
  const text =
    'MemTotal: 1000 kB\nMemFree: 300 kB\nInactive(file): 200 kB\nAnonPages: 50 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n';
  const { totalBytes, swapUsageBytes, usage } = hostMemory(text);
  assert.deepEqual([totalBytes, swapUsageBytes], [1_024_000, 6 * 1_024]);
  assert.deepEqual([usage.usageBytes, usage.workingSetBytes], [700 * 1_024, 500 * 1_024]);
});
