import type { LinuxContainerResources } from '../../cri/index.ts';
import {
  cpuQuotaUs,
  cpuShares,
  memoryOf,
  milliCpuOf,
  type Pod,
  readResources,
  sharesToMilliCpu,
} from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** Limits of a pod's cgroup; -1 means no limit. */
export interface PodLimits {
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  readonly memoryBytes: number;
}

/** Reads and changes pod cgroups for resizing. */
export interface PodLimitsAccess {
  /**
   * The cgroup limits computed from the pod's spec, rounded as by the kernel; undefined when the
   * node has no pod cgroups.
   */
  wanted(pod: Pod): PodLimits | undefined;
  current(pod: Pod): Promise<PodLimits>;
  /** Changes limits of the pod's cgroup. Throws CGROUP_UPDATE. */
  set(pod: Pod, limits: Partial<PodLimits>, signal: AbortSignal): Promise<void>;
  memoryUsage(pod: Pod): Promise<number>;
  /** Called after CPU shares of a pod changed, to update those of its QoS class. */
  changed(signal: AbortSignal): Promise<void>;
}

/** The implementation for nodes without pod cgroups. */
export const noPodLimits: PodLimitsAccess = {
  wanted: () => undefined,
  current: () => Promise.reject(new Error('The node has no pod cgroups')),
  set: async () => {},
  memoryUsage: async () => 0,
  changed: async () => {},
};

/** The sandbox limits for the runtime, which exclude the pod's overhead. */
export function sandboxLimits(pod: Pod, limits: PodLimits): MessageInit<LinuxContainerResources> {
  const overhead = readResources(pod.spec.overhead);
  const { cpuPeriodUs } = limits;
  const [cpu, memory] = [milliCpuOf(overhead), memoryOf(overhead)];
  const less = (amount: number, part: bigint) => (amount < 0 ? -1n : BigInt(amount) - part);
  // CPU shares are rounded, so the pod's CPU minus its overhead may be negative; it then counts as
  // the minimum of CPU shares.
  const left = BigInt(sharesToMilliCpu(limits.cpuShares)) - cpu;
  return {
    cpuShares: cpu === 0n ? BigInt(limits.cpuShares) : cpuShares(left),
    cpuQuota: less(limits.cpuQuotaUs, cpuQuotaUs(cpu, BigInt(cpuPeriodUs))),
    cpuPeriod: BigInt(cpuPeriodUs),
    memoryLimitInBytes: less(limits.memoryBytes, memory),
  };
}

/** Whether limit a is larger than limit b; -1 means no limit and is the largest. */
export function isMore(a: number, b: number): boolean {
  return b !== -1 && (a === -1 || a > b);
}
