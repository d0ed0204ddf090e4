import {
  cpuQuotaUs,
  cpuShares,
  initContainersOf,
  isPositive,
  memoryOf,
  milliCpuOf,
  type Pod,
  podLimits,
  podRequests,
  qosClass,
  type ResourceList,
  readResources,
} from '../pods/index.ts';
import { minShares } from './cgroup-math.ts';
import type { CgroupValues } from './cgroup-values.ts';

export interface PodCgroupSettings {
  readonly cpuCfsQuota: boolean;
  readonly cpuCfsQuotaPeriodUs: number;
  /** Not written unless above zero. */
  readonly podPidsLimit: number;
}

/** What the cgroup of the pod is set to. Pure. */
export function podCgroupValues(pod: Pod, settings: PodCgroupSettings): CgroupValues {
  const pidsLimit = settings.podPidsLimit > 0 ? settings.podPidsLimit : undefined;
  const quality = qosClass(pod);
  if (quality === 'BestEffort') return { cpuShares: minShares, pidsLimit };
  const limits = podLimits(pod);
  const isLimited = (resource: 'cpu' | 'memory') => quality === 'Guaranteed' || limitsAll(pod, resource);
  return {
    cpuShares: Number(cpuShares(milliCpuOf(podRequests(pod)))),
    ...(isLimited('cpu') ? quotaValues(limits, settings) : {}),
    memoryBytes: isLimited('memory') ? orNothing(memoryOf(limits)) : undefined,
    pidsLimit,
  };
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

/** A limit on the pod as a whole holds only what every container is held to, or what the pod says itself. */
function limitsAll(pod: Pod, resource: 'cpu' | 'memory'): boolean {
  const holders = [...pod.spec.containers, ...initContainersOf(pod)].map((container) => container.resources);
  const isSet = (limits: Readonly<Record<string, string>> | undefined) =>
    isPositive(readResources(limits).get(resource));
  return isSet(pod.spec.resources?.limits) || holders.every((resources) => isSet(resources?.limits));
}

/** An amount of the machine. */
export interface NodeAmount {
  readonly milliCpu: number;
  readonly memoryBytes: number;
  readonly pids?: number | undefined;
}

/** What all pods together may have: the machine without what is reserved for others, never below nothing. */
export function kubepodsValues(capacity: NodeAmount, reserved: NodeAmount): CgroupValues {
  const left = (all: number, kept: number) => Math.max(0, all - kept);
  return {
    cpuShares: Number(cpuShares(BigInt(left(capacity.milliCpu, reserved.milliCpu)))),
    memoryBytes: left(capacity.memoryBytes, reserved.memoryBytes),
    pidsLimit: capacity.pids === undefined ? undefined : left(capacity.pids, reserved.pids ?? 0),
  };
}
