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

/** What the cgroup of a pod as a whole holds it to; -1 for no limit. */
export interface PodLimits {
  readonly cpuShares: number;
  readonly cpuQuotaUs: number;
  readonly cpuPeriodUs: number;
  readonly memoryBytes: number;
}

/** The cgroups of pods, as far as resizing needs them. */
export interface PodLimitsAccess {
  /** What the pod is to have, as the kernel would keep it; undefined where pods have no cgroup of their own. */
  wanted(pod: Pod): PodLimits | undefined;
  current(pod: Pod): Promise<PodLimits>;
  /** Throws CGROUP_UPDATE. */
  set(pod: Pod, limits: Partial<PodLimits>, signal: AbortSignal): Promise<void>;
  memoryUsage(pod: Pod): Promise<number>;
  /** The weight of a pod has changed: so has that of all of its class. */
  changed(signal: AbortSignal): Promise<void>;
}

/** For a node whose pods have no cgroups of their own. */
export const noPodLimits: PodLimitsAccess = {
  wanted: () => undefined,
  current: () => Promise.reject(new Error('Pods have no cgroups of their own')),
  set: async () => {},
  memoryUsage: async () => 0,
  changed: async () => {},
};

/** As the runtime is told of a sandbox: without what the class of the pod costs by itself. */
export function sandboxLimits(pod: Pod, limits: PodLimits): MessageInit<LinuxContainerResources> {
  const overhead = readResources(pod.spec.overhead);
  const { cpuPeriodUs } = limits;
  const [cpu, memory] = [milliCpuOf(overhead), memoryOf(overhead)];
  const less = (amount: number, part: bigint) => (amount < 0 ? -1n : BigInt(amount) - part);
  // Weights are kept rounded: of one it may seem that less is left than nothing.
  const left = BigInt(sharesToMilliCpu(limits.cpuShares)) - cpu;
  return {
    cpuShares: cpu === 0n ? BigInt(limits.cpuShares) : cpuShares(left),
    cpuQuota: less(limits.cpuQuotaUs, cpuQuotaUs(cpu, BigInt(cpuPeriodUs))),
    cpuPeriod: BigInt(cpuPeriodUs),
    memoryLimitInBytes: less(limits.memoryBytes, memory),
  };
}

/** Whether it is more; no limit is more than any. */
export function isMore(a: number, b: number): boolean {
  return b !== -1 && (a === -1 || a > b);
}
