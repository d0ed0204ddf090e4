import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CgroupLayout, parseQuantity } from '../lib/index.ts';
import { checkMachine, type MachineRequirements, readMachineFacts } from './machine/machine-facts.ts';
import {
  checkReservations,
  maxPods,
  type Reservations,
  reservedAmount,
  withheldAmount,
} from './machine/reservations.ts';

const v1: CgroupLayout = {
  version: 1,
  controllers: new Map([['memory', '/sys/fs/cgroup/memory']]),
  unified: undefined,
};
const v2: CgroupLayout = { version: 2, root: '/sys/fs/cgroup' };

/** A fake machine that has the given files; reading a directory lists the files below it. */
function aMachine(files: Readonly<Record<string, string>>) {
  return {
    read: async (path: string) => files[path] ?? Promise.reject(new Error(`ENOENT: ${path}`)),
    list: async (dir: string) => {
      const below = Object.keys(files).filter((path) => path.startsWith(`${dir}/`));
      if (below.length === 0) throw new Error(`ENOENT: ${dir}`);
      return [...new Set(below.map((path) => path.slice(dir.length + 1).split('/')[0] ?? ''))];
    },
  };
}

describe('machine facts', () => {
  it('reads the facts of a machine from its files', async () => {
    const files = {
      '/proc/sys/kernel/pid_max': '4194304\n',
      '/proc/sys/kernel/threads-max': '62836\n',
      '/proc/swaps':
        'Filename Type Size Used Priority\n/dev/sda2 partition 4194300 0 -2\n/swap file 1024 0 -3\n',
      '/proc/meminfo': 'MemTotal:        8000000 kB\nSwapTotal:       4195324 kB\nSwapFree: 1 kB\n',
      '/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '16\n',
      '/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages': '0\n',
      '/sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages': '3\n',
      '/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes': '9223372036854771712\n',
    };
    assert.deepEqual(await readMachineFacts(aMachine(files), v1), {
      pids: 62_836,
      hugePages: new Map([
        ['1GB', 0],
        ['2MB', 33_554_432],
        ['64KB', 196_608],
      ]),
      swaps: ['/dev/sda2', '/swap'],
      swapBytes: 4_296_011_776n,
      swapController: 'present',
    });
  });

  it('reads no PID limit, huge pages or swap on a machine without these files', async () => {
    const facts = { pids: undefined, hugePages: new Map(), swaps: [], swapBytes: 0n } as const;
    assert.deepEqual(await readMachineFacts(aMachine({}), v2), { ...facts, swapController: 'absent' });
  });

  it('reads from the cgroup of this process whether swap can be limited', async () => {
    const files = {
      '/proc/self/cgroup': '0::/system.slice/kubeling.service\n',
      '/sys/fs/cgroup/system.slice/kubeling.service/memory.swap.max': 'max\n',
    };
    assert.equal((await readMachineFacts(aMachine(files), v2)).swapController, 'present');
  });
});

describe('machine requirements', () => {
  const demands: MachineRequirements = {
    failSwapOn: true,
    failCgroupV1: false,
    swapBehavior: '',
    singleProcessOomKill: undefined,
  };

  it('accepts the default settings on a machine without swap', () => {
    for (const version of [1, 2] as const) checkMachine(demands, { swaps: [] }, version);
  });

  it('rejects a machine with swap unless swap is allowed', () => {
    const swaps = ['/dev/sda2'];
    assert.throws(() => checkMachine(demands, { swaps }, 2), {
      code: 'MACHINE_UNFIT',
      message: /failSwapOn must be false .* swaps to \/dev\/sda2/,
    });
    checkMachine({ ...demands, failSwapOn: false, swapBehavior: 'LimitedSwap' }, { swaps }, 2);
  });

  it('reports all settings that cgroups v1 does not support in one error', () => {
    const all = {
      failSwapOn: false,
      failCgroupV1: true,
      swapBehavior: 'LimitedSwap',
      singleProcessOomKill: false,
    };
    assert.throws(
      () => checkMachine(all, { swaps: [] }, 1),
      (error: Error) => {
        assert.match(error.message, /failCgroupV1.*swapBehavior.*singleProcessOOMKill/);
        return true;
      },
    );
    checkMachine(all, { swaps: [] }, 2);
  });
});

describe('the maximum number of pods', () => {
  it('podsPerCore can only reduce the maximum number of pods', () => {
    const pods = (podsPerCore: number) => maxPods({ maxPods: 110, podsPerCore }, 4_000);
    assert.deepEqual([0, 10, 100].map(pods), [110, 40, 110]);
  });
});

describe('reservations', () => {
  const capacity = { milliCpu: 4000, memoryBytes: 8_589_934_592, pids: 1000 };
  const none: Reservations = {
    systemReserved: {},
    kubeReserved: {},
    reservedSystemCPUs: '',
    enforceNodeAllocatable: ['pods'],
  };
  const some = {
    ...none,
    systemReserved: { cpu: '500m', memory: '1Gi', pid: '100' },
    kubeReserved: { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
  };

  it('adds up the system and the kube reservations', () => {
    const { hugePages: _, ...amount } = reservedAmount(some);
    assert.deepEqual(amount, { milliCpu: 750, memoryBytes: 1_610_612_736, pids: 100 });
  });

  it('reserves the CPUs of reservedSystemCPUs instead of the reserved CPU amounts', () => {
    assert.equal(reservedAmount({ ...some, reservedSystemCPUs: '0-1,3' }).milliCpu, 3000);
  });

  it('does not subtract reservations from kubepods unless enforceNodeAllocatable includes pods', () => {
    assert.deepEqual(reservedAmount({ ...some, enforceNodeAllocatable: ['none'] }), {
      milliCpu: 0,
      memoryBytes: 0,
    });
  });

  it('subtracts eviction thresholds, huge pages and reservations from allocatable, even if the reservations are not enforced', () => {
    const hugePages = new Map([['2MB', 4_194_304]]);
    const withheld = (free?: Parameters<typeof withheldAmount>[2]) =>
      withheldAmount({ ...some, enforceNodeAllocatable: ['none'] }, { ...capacity, hugePages }, free);
    assert.equal(withheld().milliCpu, 750);
    assert.equal(withheld().memoryBytes, 1_610_612_736 + 4_194_304);
    assert.equal(withheld({ percent: 10 }).memoryBytes, 1_610_612_736 + 4_194_304 + 858_993_459);
    const quantity = parseQuantity('100Mi');
    assert.equal(withheld({ quantity }).memoryBytes, 1_610_612_736 + 4_194_304 + 104_857_600);
  });

  it('rejects reservations above the capacity', () => {
    const greedy = { ...none, systemReserved: { cpu: '3', memory: '9Gi' }, kubeReserved: { cpu: '2' } };
    assert.throws(() => checkReservations(greedy, capacity, {}), {
      code: 'RESERVATION_TOO_LARGE',
      message: /cpu: 5000 of 4000 .*memory: 9663676416 of 8589934592/,
    });
  });

  it('rejects disk reservations that exceed the disk together with the eviction threshold', () => {
    const on = (diskBytes: number | undefined, disk?: Parameters<typeof checkReservations>[2]['disk']) =>
      checkReservations(some, { ...capacity, diskBytes }, { disk });
    const gibi = 1_073_741_824;
    on(gibi);
    on(undefined, { percent: 10 });
    assert.throws(() => on(gibi - 1), {
      code: 'RESERVATION_TOO_LARGE',
      message: /: ephemeral-storage: 1073741824 of 1073741823 bytes$/,
    });
    on(2 * gibi, { percent: 50 });
    assert.throws(() => on(2 * gibi, { percent: 51 }), /ephemeral-storage: /);
    assert.throws(() => on(2 * gibi, { quantity: parseQuantity('1025Mi') }), /ephemeral-storage: /);
  });

  it('rejects memory reservations that exceed memory or huge pages together with the eviction threshold', () => {
    const pages = { ...none, systemReserved: { 'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '1Gi' } };
    const hugePages = new Map([['2MB', 4_194_304]]);
    checkReservations(pages, { ...capacity, hugePages }, { memory: { percent: 100 } });
    hugePages.set('2MB', 2_097_152);
    assert.throws(() => checkReservations(pages, { ...capacity, hugePages }, {}), /huge pages of 2MB: /);
    assert.throws(() => checkReservations(some, capacity, { memory: { percent: 90 } }), /memory: /);
  });
});
