import type { HugepageLimit, LinuxContainerResources } from '../../cri/index.ts';
import type { Container } from '../../kinds/index.ts';
import {
  containerSum,
  cpuQuotaUs,
  cpuShares,
  effectiveResources,
  hasPodLevelResources,
  hugePageAmounts,
  initContainersOf,
  isCriticalPod,
  isSidecar,
  memoryOf,
  milliCpuOf,
  type Pod,
  podLimits,
  podRequests,
  qosClass,
  readResources,
} from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** The machine facts and node settings that determine container resources. */
export interface LinuxNode {
  readonly cgroups: 'v1' | 'v2';
  readonly memoryCapacity: bigint;
  readonly swapCapacity: bigint;
  /** Whether the kernel can limit swap per cgroup. */
  readonly swapController: 'present' | 'absent';
  readonly swapBehavior: 'NoSwap' | 'LimitedSwap';
  /** All huge page sizes of the kernel, in the notation of cgroup files: 2MB, 1GB. */
  readonly hugePageSizes: readonly string[];
  readonly cpuQuota: 'enforced' | 'off';
  readonly cpuPeriodUs: bigint;
  /** Whether an OOM kill ends all processes of the container; has no effect with cgroup v1. */
  readonly oomKills: 'container' | 'process';
}

export interface ResourceGrants {
  /** Whether the container has exclusive CPUs; such a container gets no CPU quota. */
  readonly exclusiveCpus?: boolean;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
}

type Resources = MessageInit<LinuxContainerResources>;

interface Amounts {
  /** The CPU request; if undefined, the runtime gets CPU shares for the limit. */
  readonly cpuRequest: bigint | undefined;
  readonly cpuLimit: bigint;
  readonly memoryLimit: bigint;
}

export function containerResources(
  pod: Pod,
  container: Container,
  node: LinuxNode,
  grants: ResourceGrants = {},
): Resources {
  const requests = readResources(container.resources?.requests);
  const limits = readResources(effectiveResources(pod, container).limits);
  const amounts = {
    cpuRequest: requests.has('cpu') ? milliCpuOf(requests) : undefined,
    cpuLimit: milliCpuOf(limits),
    memoryLimit: memoryOf(limits),
  };
  const base = baseResources(amounts, node, grants);
  const swap = swapResources(pod, container, amounts.memoryLimit, node);
  return {
    ...base,
    oomScoreAdj: oomScoreAdj(pod, container, node.memoryCapacity),
    hugepageLimits: hugePageLimits(pod, container, node),
    cpusetCpus: grants.cpusetCpus,
    cpusetMems: grants.cpusetMems,
    memorySwapLimitInBytes: swap.memorySwapLimitInBytes,
    unified: { ...base.unified, ...swap.unified },
  };
}

/** The limits that the running container has and that a resize removes. */
export interface RemovedLimits {
  readonly cpu: boolean;
  readonly memory: boolean;
}

/**
 * Returns the resources for UpdateContainerResources; fields that cannot be changed on a running
 * container are omitted.
 */
export function resizedResources(
  pod: Pod,
  container: Container,
  node: LinuxNode,
  lifted: RemovedLimits,
  grants: ResourceGrants = {},
): Resources {
  const all = containerResources(pod, container, node, grants);
  const { unified: _unified, hugepageLimits: _pages, ...resources } = all;
  // The runtime leaves an omitted limit unchanged, so a removed limit is set to -1.
  const hasSwap = resources.memorySwapLimitInBytes !== undefined;
  return {
    ...resources,
    ...(lifted.cpu && node.cpuQuota === 'enforced' && { cpuQuota: -1n }),
    ...(lifted.memory && { memoryLimitInBytes: -1n }),
    ...(lifted.memory && hasSwap && { memorySwapLimitInBytes: -1n }),
  };
}

/** Returns the resources of the sandbox: the sum of the pod's containers. */
export function sandboxResources(pod: Pod, node: LinuxNode, grants: ResourceGrants = {}): Resources {
  const requests = podRequests(pod, { overhead: 'excluded' });
  const limits = podLimits(pod, { overhead: 'excluded' });
  const amounts = {
    cpuRequest: requests.has('cpu') ? milliCpuOf(requests) : undefined,
    cpuLimit: milliCpuOf(limits),
    memoryLimit: memoryOf(limits),
  };
  return baseResources(amounts, node, grants);
}

/** Returns the overhead of the pod's runtime class, as both request and limit. */
export function overheadResources(pod: Pod, node: LinuxNode): Resources {
  if (pod.spec.overhead === undefined) return {};
  const overhead = readResources(pod.spec.overhead);
  const cpu = milliCpuOf(overhead);
  return baseResources({ cpuRequest: cpu, cpuLimit: cpu, memoryLimit: memoryOf(overhead) }, node, {});
}

function baseResources(amounts: Amounts, node: LinuxNode, { exclusiveCpus }: ResourceGrants): Resources {
  const { cpuLimit, cpuRequest = cpuLimit, memoryLimit } = amounts;
  const quota = exclusiveCpus === true ? -1n : cpuQuotaUs(cpuLimit, node.cpuPeriodUs);
  const oomGroup = node.cgroups === 'v2' && node.oomKills === 'container';
  return {
    cpuShares: cpuShares(cpuRequest),
    memoryLimitInBytes: memoryLimit,
    ...(node.cpuQuota === 'enforced' ? { cpuQuota: quota, cpuPeriod: node.cpuPeriodUs } : {}),
    unified: oomGroup ? { 'memory.oom.group': '1' } : {},
  };
}

/** Limits every huge page size of the machine, to zero unless the pod requests it. */
function hugePageLimits(pod: Pod, container: Container, node: LinuxNode): MessageInit<HugepageLimit>[] {
  const requested = new Map([
    ...hugePageAmounts(readResources(hasPodLevelResources(pod) ? pod.spec.resources?.limits : {})),
    ...hugePageAmounts(readResources(container.resources?.limits)),
  ]);
  return node.hugePageSizes.map((pageSize) => ({ pageSize, limit: requested.get(pageSize) ?? 0n }));
}

function swapResources(pod: Pod, container: Container, memoryLimit: bigint, node: LinuxNode): Resources {
  if (node.swapController === 'absent') return {};
  // Returns the swap limit. With cgroup v1 it covers memory and swap together, so a value equal to
  // the memory limit disables swap.
  if (node.cgroups === 'v1') return { memorySwapLimitInBytes: memoryLimit };
  return { unified: { 'memory.swap.max': `${swapShare(pod, container, node)}` } };
}

/** Whether the container can use swap; the amount depends on its memory request. */
export function mayUseSwap(pod: Pod, container: Container, node: LinuxNode): boolean {
  return node.swapController === 'present' && node.cgroups === 'v2' && swapShare(pod, container, node) > 0n;
}

/**
 * Returns the swap limit in proportion to the memory request; swap is only for Burstable pods that
 * are not critical.
 */
function swapShare(pod: Pod, container: Container, node: LinuxNode): bigint {
  const request = memoryOf(readResources(container.resources?.requests));
  const limit = memoryOf(readResources(container.resources?.limits));
  const entitled =
    node.swapBehavior === 'LimitedSwap' && !isCriticalPod(pod) && qosClass(pod) === 'Burstable';
  if (!entitled || request === 0n || request === limit || request > node.memoryCapacity) return 0n;
  return (request * node.swapCapacity) / node.memoryCapacity;
}

const guaranteed = -997n;
const bestEffort = 1000n;
/**
 * The minimum oom_score_adj of a burstable container: a guaranteed container that uses all memory
 * gets an OOM score of at most 3, so the score of burstable containers stays above it.
 */
const leastBurstable = bestEffort + guaranteed;

/**
 * Returns the oom_score_adj of a container. Among Burstable pods, a larger memory request gives a
 * lower score.
 */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacity: bigint): bigint {
  const qos = qosClass(pod);
  if (isNodeCritical(pod) || qos === 'Guaranteed') return guaranteed;
  if (qos === 'BestEffort') return bestEffort;
  const spare = spareMemoryEach(pod);
  const score = (request: bigint) => 1000n - (1000n * (request + spare)) / memoryCapacity;
  const own = score(requestedMemory(container));
  // A sidecar serves the regular containers, so it is not killed before them.
  const adj = isSidecarOf(pod, container) ? least(own, score(smallestRegular(pod))) : own;
  if (adj < leastBurstable) return leastBurstable;
  return adj >= bestEffort ? bestEffort - 1n : adj;
}

function isNodeCritical(pod: Pod): boolean {
  return isCriticalPod(pod) && pod.spec.priorityClassName === 'system-node-critical';
}

function requestedMemory({ resources }: Container): bigint {
  return memoryOf(readResources(resources?.requests));
}

function smallestRegular({ spec }: Pod): bigint {
  return spec.containers.map(requestedMemory).reduce(least);
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function isSidecarOf(pod: Pod, { name }: Container): boolean {
  return initContainersOf(pod).some((init) => init.name === name && isSidecar(init));
}

/**
 * Returns the pod-level memory request beyond the containers' requests, divided equally among them.
 */
function spareMemoryEach(pod: Pod): bigint {
  const whole = memoryOf(readResources(pod.spec.resources?.requests));
  if (!hasPodLevelResources(pod, 'requests') || whole === 0n) return 0n;
  const count = pod.spec.containers.length + initContainersOf(pod).length;
  return (whole - memoryOf(containerSum(pod, 'requests'))) / BigInt(count);
}
