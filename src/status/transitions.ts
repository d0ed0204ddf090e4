import type { Container, ContainerStatus, PodStatus } from '../kinds/index.ts';
import { initContainersOf, isSidecar, type Pod, restartsAfterExit } from '../pods/index.ts';
import { statusUnknown } from './container-statuses.ts';
import { mayRestartAll } from './restart-all.ts';

/**
 * The containers that would leave the terminated state although their restart rules forbid it: a contradiction that
 * must not be published. None for a sound change.
 */
export function forbiddenRestarts(pod: Pod, before: PodStatus, after: PodStatus): readonly string[] {
  if (mayRestartAll(pod)) return [];
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
    return !isFoundAgain(old, now) && !restartsAfterExit(pod, container, ended.exitCode);
  });
  return back.map(({ name }) => name);
}

/** Its end was only assumed, and the runtime shows the very same instance: what is seen goes before what was assumed. */
function isFoundAgain(old: ContainerStatus | undefined, now: ContainerStatus): boolean {
  const isSame = old?.containerID !== undefined && old.containerID === now.containerID;
  return isSame && old.state?.terminated?.reason === statusUnknown;
}
