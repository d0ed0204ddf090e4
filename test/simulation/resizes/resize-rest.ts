import type { PodStatus } from '../../../src/kinds/index.ts';
import type { PodUid } from '../../../src/pods/index.ts';
import type { ContainerView } from '../../simulator/index.ts';
import { type ContainerSize, everyContainer, type PodSketch } from '../sketch.ts';
import type { World } from '../world.ts';

export const nodeSize: ContainerSize = { milliCpu: 4_000, mebibytes: 8 * 1024 };
const mebibyte = 2 ** 20;

/**
 * Differences between the resources of a pod and its last resize: a pod without pending work must
 * have the resources it requests, unless the resize is deferred for lack of node capacity.
 */
export function unlikeItsSize(environment: World, uid: string, sketch: PodSketch): readonly string[] {
  const status = environment.life?.kubelet.state.statuses.getPodStatus(uid as PodUid);
  if (status === undefined || status.phase === 'Failed') return [];
  const resizes = (status.conditions ?? []).filter(({ type }) => type.startsWith('PodResize'));
  const pending = resizes.find(({ type }) => type === 'PodResizePending');
  if (resizes.some(({ type }) => type === 'PodResizeInProgress')) return ['is still being resized'];
  if (pending !== undefined && pending.reason !== 'Deferred') return [`waits for ever: ${pending.message}`];
  const all = environment.runtime.runningContainers();
  const running = all.filter(({ podUid }) => podUid === uid);
  const rest = all.filter(({ podUid }) => podUid !== uid).map(sizeOf);
  const wished = everyContainer(sketch).flatMap(({ size }) => size ?? []);
  if (pending !== undefined && isFitting([...rest, ...wished]))
    return ['is deferred though the node has capacity'];
  return everyContainer(sketch).flatMap(({ name, size }) => {
    const found = running.find((each) => each.name === name);
    const expected = pending === undefined ? size : toldSize(status, name);
    if (found === undefined || expected === undefined) return [];
    const has = sizeOf(found);
    return has.milliCpu === expected.milliCpu && has.mebibytes === expected.mebibytes
      ? []
      : [`has ${JSON.stringify(has)} in ${name}, expected ${JSON.stringify(expected)}`];
  });
}

function sizeOf({ resources }: ContainerView): ContainerSize {
  const { cpuQuota = 0n, memoryLimitInBytes = 0n } = resources ?? {};
  return { milliCpu: Number(cpuQuota) / 100, mebibytes: Number(memoryLimitInBytes) / mebibyte };
}

function isFitting(sizes: readonly ContainerSize[]): boolean {
  const sum = (name: keyof ContainerSize) => sizes.reduce((total, size) => total + size[name], 0);
  return sum('milliCpu') <= nodeSize.milliCpu && sum('mebibytes') <= nodeSize.mebibytes;
}

/** The allocated resources in the pod's status. */
function toldSize(status: PodStatus, name: string): ContainerSize | undefined {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const { cpu, memory } = all.find((each) => each.name === name)?.allocatedResources ?? {};
  if (cpu === undefined || memory === undefined) return undefined;
  return {
    milliCpu: cpu.endsWith('m') ? Number.parseInt(cpu, 10) : Number(cpu) * 1_000,
    mebibytes: memory.endsWith('Gi') ? Number.parseInt(memory, 10) * 1_024 : Number.parseInt(memory, 10),
  };
}
