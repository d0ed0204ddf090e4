import type { ContainerStatus, PodStatus } from '../kinds/index.ts';
import { initContainersOf, isSidecar, isStaticPod, isTerminalPhase, type Pod } from '../pods/index.ts';
import { replaceReadiness } from './conditions.ts';
import { lostAtTermination } from './container-statuses.ts';

/**
 * The last status of a pod, once nothing of it is left. A container whose end nobody saw has failed: success must be
 * seen. Regular containers of a pod that never got through initialization stay waiting, for they never ran.
 */
export function finalStatus(pod: Pod, status: PodStatus): PodStatus {
  const regular = hasInitialized(pod, status)
    ? status.containerStatuses?.map(ended)
    : status.containerStatuses;
  const started = startedInits(status.initContainerStatuses ?? []);
  const init = status.initContainerStatuses?.map((one, index) => (index < started ? ended(one) : one));
  const phase = isTerminalPhase(status.phase) || isStaticPod(pod) ? status.phase : 'Failed';
  return replaceReadiness(pod, { ...status, phase, containerStatuses: regular, initContainerStatuses: init });
}

function ended(status: ContainerStatus): ContainerStatus {
  if (status.state?.terminated !== undefined) return status;
  return { ...status, state: { terminated: lostAtTermination }, started: false, ready: false };
}

/** Whether anything shows that regular containers could start. */
function hasInitialized(pod: Pod, status: PodStatus): boolean {
  const containers = initContainersOf(pod);
  if (containers.length === 0 || (status.containerStatuses ?? []).some(hasLeftWaiting)) return true;
  const last = status.initContainerStatuses?.at(-1);
  const container = containers.find(({ name }) => name === last?.name);
  if (last === undefined || container === undefined) return false;
  if (isSidecar(container)) return last.state?.running !== undefined && last.started === true;
  return last.state?.terminated?.exitCode === 0 || last.lastState?.terminated?.exitCode === 0;
}

function hasLeftWaiting({ state, lastState }: ContainerStatus): boolean {
  return (
    lastState?.terminated !== undefined || state?.running !== undefined || state?.terminated !== undefined
  );
}

/** How many init containers, from the first, are at or before the last that shows signs of a start; at least one. */
function startedInits(statuses: readonly ContainerStatus[]): number {
  return Math.max(1, statuses.findLastIndex(hasLeftWaiting) + 1);
}
