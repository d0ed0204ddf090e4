import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SimulatedCgroupHost } from '../../../test/fakes/simulated-cgroup-host.ts';
import { type CgroupHost, detectCgroupLayout } from '../../lib/index.ts';
import type { CgroupValues } from './cgroup-values.ts';
import { writeValues } from './write-values.ts';

const base = '/sys/fs/cgroup';

/**
 * Creates a fake cgroup `x` in every controller tree; all writes to the cgroup are recorded in
 * order.
 */
async function aCgroup(mode: 'v1' | 'v2', mounts?: readonly string[]) {
  const host = new SimulatedCgroupHost({ mode, ...(mounts === undefined ? {} : { mounts }) });
  const layout = await detectCgroupLayout(host);
  if (layout.version === 2) await host.write(`${base}/cgroup.subtree_control`, '+cpu +memory +pids +hugetlb');
  const roots = layout.version === 2 ? [base] : [...new Set(layout.controllers.values())];
  for (const root of roots) await host.mkdir(`${root}/x`);
  const written: string[] = [];
  const recorded: CgroupHost = Object.assign(Object.create(host), {
    read: (path: string) => host.read(path),
    write: async (path: string, value: string) => {
      await host.write(path, value);
      written.push(`${path.slice(path.lastIndexOf('/') + 1)}=${value}`);
    },
  });
  const write = (values: CgroupValues, on = recorded) =>
    writeValues({ host: on, layout, path: '/x' }, values);
  return { host, recorded, written, write };
}

describe('values of cgroups v1', () => {
  it('cgroups v1: writes the quota first if the new period does not fit the old quota', async () => {
    const { recorded, written, write } = await aCgroup('v1');
    let rejections = 1;
    const picky: CgroupHost = Object.assign(Object.create(recorded), {
      write: async (path: string, value: string) => {
        if (path.endsWith('cfs_period_us') && rejections-- > 0)
          throw Object.assign(new Error('EINVAL: write'), { code: 'EINVAL' });
        await recorded.write(path, value);
      },
    });
    assert.deepEqual(await write({ cpuPeriodUs: 5000, cpuQuotaUs: 2000 }, picky), []);
    assert.deepEqual(written, ['cpu.cfs_quota_us=2000', 'cpu.cfs_period_us=5000']);
  });

  it('cgroups v1: increases swap before memory, and decreases memory before swap', async () => {
    const { written, write } = await aCgroup('v1');
    assert.deepEqual(await write({ memoryBytes: 8_388_608, swapBytes: 8_388_608 }), []);
    assert.deepEqual(await write({ memoryBytes: 16_777_216, swapBytes: 16_777_216 }), []);
    assert.deepEqual(
      written.map((line) => line.replace('.limit_in_bytes', '')),
      ['memory=8388608', 'memory.memsw=8388608', 'memory.memsw=16777216', 'memory=16777216'],
    );
  });

  it('cgroups v1: reports CPU shares that the kernel replaced by another value', async () => {
    const { write } = await aCgroup('v1');
    const [failure] = await write({ cpuShares: 1 });
    assert.match(String(failure?.message), /cpu\.shares to 1: the kernel keeps it at 2/);
  });

  it('cgroups v1: writes the remaining values if the kernel rejects one', async () => {
    const { host, written, write } = await aCgroup('v1');
    host.setMemoryUsage(`${base}/memory/x`, 50_000_000);
    const failures = await write({ memoryBytes: 4096, pidsLimit: 5 });
    assert.match(String(failures[0]?.message), /50000000 bytes now/);
    assert.deepEqual(written, ['pids.max=5']);
  });

  it('cgroups v1: writes huge page limits in the tree of the hugetlb controller', async () => {
    const { written, write } = await aCgroup('v1', ['cpu,cpuacct', 'cpuset', 'memory', 'pids', 'hugetlb']);
    // The kernel of the simulated machine does not support the second huge page size.
    const hugePages = new Map([
      ['2MB', 2 ** 62],
      ['1GB', 0],
    ]);
    assert.deepEqual(await write({ hugePages }), []);
    assert.deepEqual(written, ['hugetlb.2MB.limit_in_bytes=4611686018427387904']);
  });

  it('cgroups v1: skips huge page limits without the hugetlb controller', async () => {
    const { written, write } = await aCgroup('v1');
    assert.deepEqual([await write({ hugePages: new Map([['2MB', 0]]) }), written], [[], []]);
  });
});

describe('values of cgroups v2', () => {
  const mounts = ['cpu', 'memory', 'pids', 'hugetlb'];

  it('cgroups v2: writes "max" for no limit', async () => {
    const { written, write } = await aCgroup('v2', mounts);
    assert.deepEqual(
      await write({ cpuShares: 1024, cpuQuotaUs: -1, cpuPeriodUs: 50_000, pidsLimit: -1 }),
      [],
    );
    assert.deepEqual(written, ['cpu.weight=39', 'cpu.max=max 50000', 'pids.max=max']);
  });

  it('cgroups v2: limits swap separately from memory, and huge pages by size', async () => {
    const { written, write } = await aCgroup('v2', mounts);
    const hugePages = new Map([['2MB', 4_194_304]]);
    assert.deepEqual(await write({ memoryBytes: 8_388_608, swapBytes: 0, hugePages }), []);
    assert.deepEqual(written, ['memory.swap.max=0', 'memory.max=8388608', 'hugetlb.2MB.max=4194304']);
  });
});
