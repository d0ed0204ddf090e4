import type { Container, ContainerState, ContainerStatus, PodStatus } from '../kinds/index.ts';
import { initContainersOf, isSidecar, type Pod, restartsAfterExit } from '../pods/index.ts';
import { statusUnknown } from './container-statuses.ts';
import { mayRestartAll } from './restart-all.ts';

/**
 * The containers that would leave the terminated state although their restart rules forbid it: a contradiction that
 * must not be published. None for a sound change, and none in a pod that always restarts: whatever its init containers
 * say for themselves, they come back with a new sandbox.
 */
export function forbiddenRestarts(pod: Pod, before: PodStatus, after: PodStatus): readonly string[] {
  if ((pod.spec.restartPolicy ?? 'Always') === 'Always' || mayRestartAll(pod)) return [];
  const plain = initContainersOf(pod).filter((container) => !isSidecar(container));
  return [
    ...forbidden(pod, plain, before.initContainerStatuses, after.initContainerStatuses),
    ...forbidden(pod, pod.spec.containers, before.containerStatuses, after.containerStatuses),
  ];
}

function forbidden(
  pod: Pod,
  containers: readonly Container[],
  before: readonly ContainerStatus[] = [],
  after: readonly ContainerStatus[] = [],
): readonly string[] {
  const back = containers.filter((container) => {
    const old = before.find(({ name }) => name === container.name);
    const ended = old?.state?.terminated;
    const now = after.find(({ name }) => name === container.name);
    if (ended === undefined || now === undefined || now.state?.terminated !== undefined) return false;
    return !wasAssumed(ended) && !restartsAfterExit(pod, container, ended.exitCode);
  });
  return back.map(({ name }) => name);
}

/** What was lost from sight may be found again, and is started anew by every policy: what is seen goes before it. */
function wasAssumed({ reason }: NonNullable<ContainerState['terminated']>): boolean {
  return reason === statusUnknown;
}
