import type { Container } from '../../kinds/index.ts';
import {
  containerSum,
  hasPodLevelResources,
  initContainersOf,
  isCriticalPod,
  isSidecar,
  memoryOf,
  type Pod,
  qosClass,
  readResources,
} from '../../pods/index.ts';

const guaranteed = -997n;
const bestEffort = 1000n;
/** A container of a guaranteed pod using all memory scores 3 at most; burstable ones stay above that. */
const leastBurstable = bestEffort + guaranteed;

/**
 * How willing the kernel is to kill the container when the machine runs out of memory. Among burstable pods, those
 * that asked for more of the machine's memory are spared longer.
 */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacity: bigint): bigint {
  const qos = qosClass(pod);
  if (isNodeCritical(pod) || qos === 'Guaranteed') return guaranteed;
  if (qos === 'BestEffort') return bestEffort;
  const spare = spareMemoryEach(pod);
  const score = (request: bigint) => 1000n - (1000n * (request + spare)) / memoryCapacity;
  const own = score(requestedMemory(container));
  // A sidecar serves the others, so it does not die before them.
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

/** What the pod as a whole asked for beyond its containers is shared among them equally. */
function spareMemoryEach(pod: Pod): bigint {
  const whole = memoryOf(readResources(pod.spec.resources?.requests));
  if (!hasPodLevelResources(pod, 'requests') || whole === 0n) return 0n;
  const count = pod.spec.containers.length + initContainersOf(pod).length;
  return (whole - memoryOf(containerSum(pod, 'requests'))) / BigInt(count);
}
