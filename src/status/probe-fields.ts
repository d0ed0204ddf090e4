import type { Container, ContainerStatus } from '../kinds/index.ts';
import { findNamed, initContainersOf, isSidecar, type Pod } from '../pods/index.ts';
import type { ContainerStatusLists } from './container-statuses.ts';
import type { ProbedFlags, StatusContext } from './context.ts';

/** Adds `started` and `ready` to container statuses; ephemeral containers have neither. */
export function withProbeFields(
  pod: Pod,
  lists: ContainerStatusLists,
  context: StatusContext,
): ContainerStatusLists {
  const find = (containers: readonly Container[], name: string) => findNamed(containers, name);
  const { containerStatuses, initContainerStatuses } = context.previous;
  const oldOf = (name: string) =>
    findNamed(containerStatuses, name) ?? findNamed(initContainerStatuses, name);
  const probed = (status: ContainerStatus, container: Container | undefined) =>
    fields({ pod, status, container, old: oldOf(status.name), context });
  return {
    ...lists,
    regular: lists.regular.map((status) => probed(status, find(pod.spec.containers, status.name))),
    init: lists.init.map((status) => {
      const container = find(initContainersOf(pod), status.name);
      if (container !== undefined && isSidecar(container)) return probed(status, container);
      const isRunning = status.state?.running !== undefined;
      return { ...status, started: isRunning, ready: status.state?.terminated?.exitCode === 0 };
    }),
  };
}

interface Probed {
  readonly pod: Pod;
  readonly status: ContainerStatus;
  readonly container: Container | undefined;
  readonly old: ContainerStatus | undefined;
  readonly context: StatusContext;
}

function fields(probed: Probed): ContainerStatus {
  const started = isStarted(probed);
  return { ...probed.status, started, ready: started && isReady(probed) };
}

function isStarted({ status, container, old, context }: Probed): boolean {
  if (status.state?.running === undefined || wasStopped(status, context)) return false;
  const result = context.probes.startup(status.containerID ?? '');
  if (result !== undefined) return result === 'success';
  // A published start is kept for the same instance, because after a kubelet restart there is no
  // probe result yet.
  if (published({ status, old, context })?.started === true) return true;
  return container?.startupProbe === undefined;
}

function wasStopped({ containerID = '' }: ContainerStatus, { stopped }: StatusContext): boolean {
  return stopped?.has(containerID.slice(containerID.indexOf('://') + 3)) === true;
}

function isReady(probed: Probed): boolean {
  const { status, container, context } = probed;
  if (container?.readinessProbe === undefined) return true;
  const result = context.probes.readiness(status.containerID ?? '');
  return result === undefined ? wasReady(probed) : result === 'success';
}

/**
 * Without a probe result the published values of the same instance apply, so that a restart of the
 * kubelet does not make a pod unready. Instances are compared by id, because start times depend on
 * a clock that may have been set.
 */
function wasReady({ status, old, context }: Probed): boolean {
  return published({ status, old, context })?.ready ?? false;
}

/** The published status of the container if it belongs to the same instance. */
function published({ status, old, context }: Pick<Probed, 'status' | 'old' | 'context'>) {
  if (isSame(status, old)) return { started: old?.started === true, ready: old?.ready === true };
  const noted: ProbedFlags | undefined = context.noted?.(status.containerID ?? '');
  return noted;
}

function isSame(status: ContainerStatus, old: ContainerStatus | undefined): boolean {
  return status.containerID !== undefined && status.containerID === old?.containerID;
}
