import { sharesToWeight, weightToShares, wholePercentQuotaUs } from '../../lib/index.ts';
import type { PodUid } from '../../pods/index.ts';
import type { CgroupDriver } from './cgroup-name.ts';
import type { CgroupTarget } from './write-values.ts';

/** What may be set on a cgroup; what is left out is not written. */
export interface CgroupValues {
  readonly cpuShares?: number | undefined;
  /** -1 for no limit. */
  readonly cpuQuotaUs?: number | undefined;
  readonly cpuPeriodUs?: number | undefined;
  /** -1 for no limit; 0 is not written. */
  readonly memoryBytes?: number | undefined;
  /** Memory and swap together in the first version, swap alone in the second. -1 for no limit. */
  readonly swapBytes?: number | undefined;
  /** -1 for no limit. */
  readonly pidsLimit?: number | undefined;
  /** A list such as 0-3. Only the second version has it: in the first a cgroup is given those of the one above it. */
  readonly cpus?: string | undefined;
  /** From the size of a page as files spell it, such as 2MB, to bytes. */
  readonly hugePages?: ReadonlyMap<string, number> | undefined;
}

/** What a container of the runtime, whether or not it runs now, was given of the machine. */
export interface RuntimePlacement {
  readonly uid: PodUid;
  readonly container: string;
  /** The processors it may use; empty for all. */
  readonly cpus: ReadonlySet<number>;
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  /** The NUMA nodes its memory comes from; empty for all. */
  readonly mems: ReadonlySet<number>;
  /** How much it may have, in bytes by the name of the resource. */
  readonly memory: ReadonlyMap<string, number>;
}

/** What a cgroup holds those in it to, of processors and memory; -1 for no limit. */
export interface CgroupLimits {
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  readonly memoryBytes: number;
}

/** More than any machine has: what the kernel shows where there is no limit. */
const unlimited = 2 ** 62;
const pageBytes = 4096;

/** What the kernel says now. */
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

/** The same limits as the kernel will show them once they are set. */
export function asKept(limits: CgroupLimits, version: 1 | 2, driver: CgroupDriver): CgroupLimits {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryBytes } = limits;
  return {
    ...limits,
    cpuQuotaUs: driver === 'systemd' ? wholePercentQuotaUs(cpuQuotaUs, cpuPeriodUs) : cpuQuotaUs,
    cpuShares: version === 2 ? sharesBehind(sharesToWeight(cpuShares)) : cpuShares,
    memoryBytes: memoryBytes < 0 ? -1 : Math.floor(memoryBytes / pageBytes) * pageBytes,
  };
}

/** Shares that give this weight when they are set again, which those that are rounded down may not. */
function sharesBehind(weight: number): number {
  const shares = weightToShares(weight);
  return sharesToWeight(shares) < weight ? shares + 1 : shares;
}

function limitIn(text: string): number {
  const value = Number(text);
  return text === 'max' || value < 0 || value >= unlimited ? -1 : value;
}
