import type { ContainerStatus, PodStatus } from '../../kinds/index.ts';

/** Which instance of a container a log is asked of. */
export type WantedInstance =
  | { readonly which: 'newest' }
  /** The one before the newest. */
  | { readonly which: 'previous' }
  /** By the id its status gives it, scheme and all. */
  | { readonly which: 'id'; readonly id: string };

export type ChosenInstance =
  | { readonly kind: 'found'; readonly containerId: string }
  | { readonly kind: 'refused'; readonly message: string };

/** Decides by the pod's status whose log is read; what is refused is told in the words clients know. */
export function chooseLogInstance(
  podName: string,
  status: PodStatus,
  containerName: string,
  wanted: WantedInstance,
): ChosenInstance {
  const about = `container ${JSON.stringify(containerName)} in pod ${JSON.stringify(podName)}`;
  const container = statusOf(status, containerName);
  if (container === undefined) return refused(`${about} is not available`);
  if (wanted.which === 'id') return byId(container, wanted.id, about);
  const last = container.lastState?.terminated?.containerID;
  if (wanted.which === 'previous') return found(last) ?? refused(`previous terminated ${about} not found`);
  return newest(container, about);
}

function newest({ containerID, state, lastState }: ContainerStatus, about: string): ChosenInstance {
  const last = lastState?.terminated?.containerID;
  const terminated = refused(`${about} is terminated`);
  if (state?.running !== undefined) return found(containerID) ?? terminated;
  if (state?.terminated !== undefined)
    return found(state.terminated.containerID) ?? found(last) ?? terminated;
  if (lastState?.terminated !== undefined) return found(last) ?? terminated;
  if (state?.waiting === undefined) return refused(`${about} is waiting to start - no logs yet`);
  return refused(`${about} is waiting to start: ${waitingWords(state.waiting.reason ?? '')}`);
}

function waitingWords(reason: string): string {
  if (reason === 'ErrImagePull') return "image can't be pulled";
  return reason === 'ImagePullBackOff' ? 'trying and failing to pull image' : reason;
}

/** Only an instance the status speaks of: an id leads to no other container. */
function byId({ containerID, state, lastState }: ContainerStatus, id: string, about: string): ChosenInstance {
  const known = [containerID, state?.terminated?.containerID, lastState?.terminated?.containerID];
  return known.includes(id) ? (found(id) ?? refused('')) : refused(`${about} has no instance ${id}`);
}

function statusOf(status: PodStatus, name: string): ContainerStatus | undefined {
  return [
    ...(status.containerStatuses ?? []),
    ...(status.initContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ].find((container) => container.name === name);
}

function found(containerId: string | undefined): ChosenInstance | undefined {
  return containerId === undefined || containerId === '' ? undefined : { kind: 'found', containerId };
}

function refused(message: string): ChosenInstance {
  return { kind: 'refused', message };
}
