import type { Container, ResourceRequirements } from '../../kinds/index.ts';
import { formatQuantity, milliQuantity, quantityOf } from '../../lib/index.ts';
import {
  cpuShares,
  effectiveAllocation,
  effectiveResources,
  ephemeralContainersOf,
  memoryOf,
  milliCpuOf,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  type PodAllocation,
  type PodUid,
  quotaUsToMilliCpu,
  readResources,
  sameResources,
  sharesToMilliCpu,
} from '../../pods/index.ts';

/** Persists the resources that were last applied to containers through the runtime. */
export interface ActuatedResources {
  get(uid: PodUid): PodAllocation | undefined;
  /**
   * Sets the applied resources in memory immediately; the promise resolves when the file was
   * written or the write failed.
   */
  set(uid: PodUid, allocation: PodAllocation): Promise<void>;
}

/** Keeps the applied resources in memory only. */
export function memoryActuated(): ActuatedResources {
  const entries = new Map<PodUid, PodAllocation>();
  return {
    get: (uid) => entries.get(uid),
    async set(uid, allocation) {
      entries.set(uid, allocation);
    },
  };
}

/**
 * The resources applied to the pod's containers: the recorded ones, or else those in the runtime's
 * status of running containers. A value that the runtime does not report counts as the allocated
 * value, so that no container restarts because of a missing value.
 */
export function actuatedOf(
  pod: Pod,
  observed: ObservedPod,
  record: PodAllocation | undefined,
): PodAllocation | undefined {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const found = all.flatMap((container) => {
    const instance = newestInstance(observed, container.name);
    const isLost = record?.containers[container.name] === undefined && instance?.state === 'running';
    return isLost ? [[container.name, reportedResources(pod, container, instance)] as const] : [];
  });
  if (found.length === 0) return record;
  return {
    containers: { ...record?.containers, ...Object.fromEntries(found) },
    pod: record === undefined ? pod.spec.resources : record.pod,
  };
}

/**
 * Records the allocated resources as actuated after the cgroup of the pod was created with them;
 * later resizes start from this record.
 */
export function recordPodCgroup(actuated: ActuatedResources, pod: Pod): void {
  const { uid } = pod.metadata;
  if (actuated.get(uid) === undefined) void actuated.set(uid, effectiveAllocation(pod));
}

/**
 * Records the resources of a container before its start. A changed value is persisted before the
 * start.
 */
export async function recordActuatedStart(
  actuated: ActuatedResources,
  pod: Pod,
  container: Container,
): Promise<void> {
  const { uid } = pod.metadata;
  if (ephemeralContainersOf(pod).some(({ name }) => name === container.name)) return;
  const record = actuated.get(uid);
  const now = effectiveResources(pod, container);
  const before = record?.containers[container.name];
  const containers = { ...record?.containers, [container.name]: now };
  const whole = record === undefined ? pod.spec.resources : record.pod;
  const written = actuated.set(uid, { containers, pod: whole });
  if (before !== undefined && !sameResources(before, now)) await written;
}

/** The allocated resources, replaced by the values that the runtime reports where they differ. */
export function reportedResources(
  pod: Pod,
  container: Container,
  { resources: reported }: ObservedContainer,
): ResourceRequirements {
  const allocated = effectiveResources(pod, container);
  if (reported === undefined) return allocated;
  const [requests, limits] = [readResources(allocated.requests), readResources(allocated.limits)];
  const request = requests.has('cpu') ? milliCpuOf(requests) : milliCpuOf(limits);
  const { cpuShares: shares, cpuQuota = -1, cpuPeriod = 0, memoryLimitBytes } = reported;
  const limit = cpuPeriod > 0 ? quotaUsToMilliCpu(cpuQuota, cpuPeriod) : 0;
  const isOtherShare = shares !== undefined && shares !== Number(cpuShares(request));
  const isOtherLimit = limit > 0 && limit !== Number(milliCpuOf(limits)) && milliCpuOf(limits) > 10n;
  const isOtherMemory = memoryLimitBytes !== undefined && memoryLimitBytes !== Number(memoryOf(limits));
  if (!isOtherShare && !isOtherLimit && !isOtherMemory) return allocated;
  const bytes = (amount: number) => formatQuantity(quantityOf(amount, 'BinarySI'));
  const cores = (milli: number) => formatQuantity(milliQuantity(milli));
  return {
    ...allocated,
    requests: { ...allocated.requests, ...(isOtherShare && { cpu: cores(sharesToMilliCpu(shares)) }) },
    limits: {
      ...allocated.limits,
      ...(isOtherLimit && { cpu: cores(limit) }),
      ...(isOtherMemory && { memory: bytes(memoryLimitBytes) }),
    },
  };
}
