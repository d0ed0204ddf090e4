import type { ContainerStatus, PodStatus } from '../../kinds/index.ts';

const underWay: ReadonlySet<string | undefined> = new Set(['ContainerCreating', 'PodInitializing']);

/** Whether it tells no more than that the pod is being started, as nothing of it has run yet and nothing has failed. */
export function isPassing(status: PodStatus): boolean {
  const { phase, reason, containerStatuses = [], initContainerStatuses = [] } = status;
  const isAwaited = ({ state, lastState }: ContainerStatus) =>
    underWay.has(state?.waiting?.reason) && lastState?.terminated === undefined;
  return (
    phase === 'Pending' &&
    reason === undefined &&
    [...containerStatuses, ...initContainerStatuses].every(isAwaited)
  );
}
