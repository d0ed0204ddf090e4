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
  /** Not written unless above zero. */
  readonly podPidsLimit: number;
  /** All the machine has, as the files spell them. */
  readonly hugePageSizes: readonly string[];
}

/** What the cgroup of the pod is set to. Pure. */
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

/** Huge pages cannot be overcommitted, so the request is the limit; a size that is not asked for is forbidden. */
function hugePageLimits(
  requests: ResourceList,
  { hugePageSizes }: PodCgroupSettings,
): ReadonlyMap<string, number> {
  const asked = hugePageAmounts(requests);
  return new Map(hugePageSizes.map((size) => [size, Number(asked.get(size) ?? 0n)]));
}

function quotaValues(limits: ResourceList, settings: PodCgroupSettings): CgroupValues {
  const cpuPeriodUs = settings.cpuCfsQuotaPeriodUs;
  const quotaUs = settings.cpuCfsQuota ? orNothing(cpuQuotaUs(milliCpuOf(limits), BigInt(cpuPeriodUs))) : -1;
  return { cpuPeriodUs, cpuQuotaUs: quotaUs };
}

/** Zero means that nothing was said. */
function orNothing(amount: bigint): number | undefined {
  return amount === 0n ? undefined : Number(amount);
}

/** An amount of the machine. */
export interface NodeAmount {
  readonly milliCpu: number;
  readonly memoryBytes: number;
  readonly pids?: number | undefined;
  /** Bytes by size of page, as the files spell it. */
  readonly hugePages?: ReadonlyMap<string, number> | undefined;
}

const left = (all: number, kept: number) => Math.max(0, all - kept);

/** What all pods together may have: the machine without what is reserved for others, never below nothing. */
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
 * How much CPU all pods together get when others want it too: as much as they have CPUs, which on a large machine leaves
 * next to nothing to cgroups with the usual weight; or as those others have by what is reserved for them.
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
      : // One more, as what is lost in rounding would be lost again on the way back.
        weightToShares(Math.max(1, Math.floor(usualWeight * ratio))) + 1;
  return Math.min(plain, Math.max(minShares, Math.floor(fair)));
}

/** Of a cgroup that nobody gave any. */
const usualShares = 1_024;
const usualWeight = 100;
