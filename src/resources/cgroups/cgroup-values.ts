import { sharesToWeight, weightToShares, wholePercentQuotaUs } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import type { CgroupDriver } from './cgroup-name.ts';
import type { CgroupTarget } from './write-values.ts';

/** The values of a cgroup; undefined values are not written. */
export interface CgroupValues {
  readonly cpuShares?: number | undefined;
  /** The CPU quota in microseconds per period; -1 for no limit. */
  readonly cpuQuotaUs?: number | undefined;
  readonly cpuPeriodUs?: number | undefined;
  /** The memory limit; -1 for no limit, 0 is not written. */
  readonly memoryBytes?: number | undefined;
  /** The swap limit: memory plus swap with cgroups v1, swap alone with v2; -1 for no limit. */
  readonly swapBytes?: number | undefined;
  /** The maximum number of PIDs; -1 for no limit. */
  readonly pidsLimit?: number | undefined;
  /**
   * A CPU list such as 0-3. Only with cgroups v2: with v1, a cgroup inherits the CPUs of its
   * parent.
   */
  readonly cpus?: string | undefined;
  /** The huge page limits in bytes by page size, in the kernel's spelling, such as 2MB. */
  readonly hugePages?: ReadonlyMap<string, number> | undefined;
}

/** The resources of a container as the CRI reports them, whether or not it is running. */
export interface RuntimePlacement {
  readonly uid: PodUid;
  readonly container: string;
  /** The CPUs that the container may use; empty for all. */
  readonly cpus: ReadonlySet<number>;
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  /** The NUMA nodes from which the container gets memory; empty for all. */
  readonly mems: ReadonlySet<number>;
  /** The memory limits in bytes by resource name, such as memory or hugepages-2Mi. */
  readonly memory: ReadonlyMap<string, number>;
}

/** The CPU and memory limits of a cgroup; -1 for no limit. */
export interface CgroupLimits {
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  readonly memoryBytes: number;
}

/** Memory limits above this value mean no limit. */
const unlimited = 2 ** 62;
const pageBytes = 4096;

/** Reads the current limits of the cgroup from the kernel. */
export async function readLimits({ host, layout, path }: CgroupTarget): Promise<CgroupLimits> {
  const read = async (dir: string, file: string) => (await host.read(`${dir}${path}/${file}`)).trim();
  if (layout.version === 2) {
    const [weight, max, memory] = await Promise.all([
      read(layout.root, 'cpu.weight'),
      read(layout.root, 'cpu.max'),
      read(layout.root, 'memory.max'),
    ]);
    const [quota = 'max', period = '100000'] = max.split(' ');
    return {
      cpuShares: sharesBehind(Number(weight)),
      cpuQuotaUs: limitIn(quota),
      cpuPeriodUs: Number(period),
      memoryBytes: limitIn(memory),
    };
  }
  const [cpu = '', memory = ''] = ['cpu', 'memory'].map((name) => layout.controllers.get(name));
  const [shares, quota, period, bytes] = await Promise.all([
    read(cpu, 'cpu.shares'),
    read(cpu, 'cpu.cfs_quota_us'),
    read(cpu, 'cpu.cfs_period_us'),
    read(memory, 'memory.limit_in_bytes'),
  ]);
  return {
    cpuShares: Number(shares),
    cpuQuotaUs: limitIn(quota),
    cpuPeriodUs: Number(period),
    memoryBytes: limitIn(bytes),
  };
}

/** Returns the limits as the kernel reports them after they are set. */
export function asKept(limits: CgroupLimits, version: 1 | 2, driver: CgroupDriver): CgroupLimits {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes } = limits;
  return {
    ...limits,
    cpuQuotaUs: driver === 'systemd' ? wholePercentQuotaUs(cpuQuotaUs, cpuPeriodUs) : cpuQuotaUs,
    cpuShares: version === 2 ? sharesBehind(sharesToWeight(cpuShares)) : cpuShares,
    memoryBytes: memoryBytes < 0 ? -1 : Math.floor(memoryBytes / pageBytes) * pageBytes,
  };
}

/**
 * Returns CPU shares that convert to exactly this cgroup v2 weight; rounded-down shares may convert
 * to a lower weight.
 */
function sharesBehind(weight: number): number {
  const shares = weightToShares(weight);
  return sharesToWeight(shares) < weight ? shares + 1 : shares;
}

function limitIn(text: string): number {
  const value = Number(text);
  return text === 'max' || value < 0 || value >= unlimited ? -1 : value;
}
