import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CgroupLayout } from '../../lib/index.ts';
import { pidLimits, readPidLimits } from './pid-limits.ts';

const v1: CgroupLayout = {
  version: 1,
  controllers: new Map([['pids', '/sys/fs/cgroup/pids']]),
  unified: undefined,
};
const v2: CgroupLayout = { version: 2, root: '/sys/fs/cgroup' };

function aMachine(files: Readonly<Record<string, string>>) {
  return { read: async (path: string) => files[path] ?? Promise.reject(new Error(`ENOENT: ${path}`)) };
}

describe('default PID limits', () => {
  for (const [capacity, reserved, perPod] of [
    [4_194_304, 419_431, 4_096],
    [32_768, 3_277, 4_096],
    [7_800, 1_024, 1_694],
    [1_000, 500, 125],
    [2, 1, 1],
  ] as const) {
    it(`of ${capacity} PIDs, reserves ${reserved} for the node and limits a pod to ${perPod}`, () => {
      assert.deepEqual(pidLimits(capacity), { reserved, perPod });
    });
  }

  it('derives the default PID limits from the PID limit of the container the node runs in', () => {
    const { reserved } = pidLimits(32_768, 4_000);
    assert.equal(32_768 - reserved, 4_000 - 1_024);
  });

  const kernel = { '/proc/sys/kernel/pid_max': '4194304\n', '/proc/sys/kernel/threads-max': '32768\n' };
  for (const [version, layout, file] of [
    [1, v1, '/sys/fs/cgroup/pids/pids.max'],
    [2, v2, '/sys/fs/cgroup/pids.max'],
  ] as const) {
    it(`reads the number of PIDs from the kernel and from the root cgroup, with cgroups v${version}`, async () => {
      assert.deepEqual(await readPidLimits(aMachine(kernel), layout), pidLimits(32_768));
      const unlimited = aMachine({ ...kernel, [file]: 'max\n' });
      assert.deepEqual(await readPidLimits(unlimited, layout), pidLimits(32_768));
      const limited = aMachine({ ...kernel, [file]: '4000\n' });
      assert.deepEqual(await readPidLimits(limited, layout), pidLimits(32_768, 4_000));
    });
  }

  it('sets no default PID limits if the kernel does not publish the number of PIDs', async () => {
    assert.equal(await readPidLimits(aMachine({}), v2), undefined);
  });
});
