import { minShares, weightToShares } from '../../lib/index.ts';
import {
  cpuQuotaUs,
  cpuShares,
  heldLimits,
  hugePageAmounts,
  isHeldTo,
  memoryOf,
  milliCpuOf,
  type Pod,
  podRequests,
  qosClass,
  type ResourceList,
} from '../../pods/index.ts';
import type { CgroupValues } from './cgroup-values.ts';

export interface PodCgroupSettings {
  readonly cpuCfsQuota: boolean;
  readonly cpuCfsQuotaPeriodUs: number;
  /** The PID limit of a pod; only a positive value is written. */
  readonly podPidsLimit: number;
  /** All huge page sizes of the machine, in the kernel's spelling. */
  readonly hugePageSizes: readonly string[];
}

/** Computes the cgroup values of a pod from its spec. Pure. */
export function podCgroupValues(pod: Pod, settings: PodCgroupSettings): CgroupValues {
  const pidsLimit = settings.podPidsLimit > 0 ? settings.podPidsLimit : undefined;
  const hugePages = hugePageLimits(podRequests(pod), settings);
  const quality = qosClass(pod);
  if (quality === 'BestEffort') return { cpuShares: minShares, pidsLimit, hugePages };
  const limits = heldLimits(pod);
  return {
    cpuShares: Number(cpuShares(milliCpuOf(podRequests(pod)))),
    ...(isHeldTo(pod, 'cpu') ? quotaValues(limits, settings) : {}),
    memoryBytes: orNothing(memoryOf(limits)),
    pidsLimit,
    hugePages,
  };
}

/**
 * Huge pages cannot be overcommitted, so the limit is the request; page sizes without a request are
 * forbidden.
 */
function hugePageLimits(
  requests: ResourceList,
  { hugePageSizes }: PodCgroupSettings,
): ReadonlyMap<string, number> {
  const requested = hugePageAmounts(requests);
  return new Map(hugePageSizes.map((size) => [size, Number(requested.get(size) ?? 0n)]));
}

function quotaValues(limits: ResourceList, settings: PodCgroupSettings): CgroupValues {
  const cpuPeriodUs = settings.cpuCfsQuotaPeriodUs;
  const quotaUs = settings.cpuCfsQuota ? orNothing(cpuQuotaUs(milliCpuOf(limits), BigInt(cpuPeriodUs))) : -1;
  return { cpuPeriodUs, cpuQuotaUs: quotaUs };
}

/** A quantity of zero means that the value is not set. */
function orNothing(amount: bigint): number | undefined {
  return amount === 0n ? undefined : Number(amount);
}

/** An amount of CPU, memory, PIDs and huge pages of the machine. */
export interface NodeAmount {
  readonly milliCpu: number;
  readonly memoryBytes: number;
  readonly pids?: number | undefined;
  /** Huge page bytes by page size, in the kernel's spelling. */
  readonly hugePages?: ReadonlyMap<string, number> | undefined;
}

const left = (all: number, kept: number) => Math.max(0, all - kept);

/**
 * Computes the limits of all pods together: the capacity without the reservations, never below
 * zero.
 */
export function kubepodsValues(
  capacity: NodeAmount,
  reserved: NodeAmount,
  weight: KubepodsWeight = 'capacity',
): CgroupValues {
  return {
    cpuShares: kubepodsShares(capacity, reserved, weight),
    memoryBytes: left(capacity.memoryBytes, reserved.memoryBytes),
    pidsLimit: capacity.pids === undefined ? undefined : left(capacity.pids, reserved.pids ?? 0),
    hugePages: new Map(
      Array.from(capacity.hugePages ?? [], ([size, bytes]) => [
        size,
        left(bytes, reserved.hugePages?.get(size) ?? 0),
      ]),
    ),
  };
}

/**
 * Computes the CPU weight of kubepods: either proportional to the CPUs of all pods, which on a
 * large machine leaves very little CPU time to cgroups with the default weight; or relative to the
 * reservations of the other cgroups.
 */
export type KubepodsWeight = 'capacity' | 'proportional-v1' | 'proportional-v2';

function kubepodsShares(capacity: NodeAmount, reserved: NodeAmount, weight: KubepodsWeight): number {
  const forPods = left(capacity.milliCpu, reserved.milliCpu);
  const plain = Number(cpuShares(BigInt(forPods)));
  if (weight === 'capacity' || reserved.milliCpu === 0) return plain;
  const ratio = forPods / reserved.milliCpu;
  const fair =
    weight === 'proportional-v1'
      ? usualShares * ratio
      : // Adds one share, because the conversions from weight to shares and back both round down.
        weightToShares(Math.max(1, Math.floor(usualWeight * ratio))) + 1;
  return Math.min(plain, Math.max(minShares, Math.floor(fair)));
}

/**
 * The CPU shares (cgroups v1) and the CPU weight (cgroups v2) of a cgroup for which none are
 * configured.
 */
const usualShares = 1_024;
const usualWeight = 100;
