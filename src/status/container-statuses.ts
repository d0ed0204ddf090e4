import type { Container, ContainerState, ContainerStatus, VolumeMountStatus } from '../kinds/index.ts';
import type { MetricRegistry } from '../lib/index.ts';
import {
  allNamed,
  ephemeralContainersOf,
  findNamed,
  initContainersOf,
  isSidecar,
  isTerminalPhase,
  lostExitCode,
  newestInstance,
  type ObservedContainer,
  type ObservedPod,
  type Pod,
  shouldContainerStart,
} from '../pods/index.ts';
import { actualResources } from './container-resources.ts';
import type { StatusContext } from './context.ts';
import { apiTimeOfNs } from './context.ts';
import { isRestartingAll, restartingAll } from './restart-all.ts';
import type { StatusChange } from './status-manager.ts';

export interface ContainerStatusLists {
  readonly init: readonly ContainerStatus[];
  readonly regular: readonly ContainerStatus[];
  readonly ephemeral: readonly ContainerStatus[];
}

type ListName = keyof ContainerStatusLists;

interface Subject {
  readonly pod: Pod;
  readonly observed: ObservedPod;
  readonly context: StatusContext;
  readonly container: Container;
  readonly list: ListName;
  readonly isRestartingAll: boolean;
  /** The last published status of the container. */
  readonly old: ContainerStatus | undefined;
}

export const statusUnknown = 'ContainerStatusUnknown';
export const lostAtTermination = {
  reason: statusUnknown,
  message: 'The container could not be located when the pod was terminated',
  exitCode: lostExitCode,
} as const;
const lostDuringDowntime = {
  reason: statusUnknown,
  message: 'The container could not be located when the pod was deleted.  The container used to be Running',
  exitCode: lostExitCode,
} as const;

/**
 * Computes one status per container of the spec, without `started` and `ready`. Init containers are
 * in spec order, other containers are sorted by name.
 */
export function containerStatuses(
  pod: Pod,
  observed: ObservedPod,
  context: StatusContext,
): ContainerStatusLists {
  const { previous } = context;
  const restarting = isRestartingAll(pod, observed, previous);
  const build = (list: ListName, containers: readonly Container[], old: readonly ContainerStatus[] = []) =>
    containers.map((container) => {
      const before = findNamed(old, container.name);
      return containerStatus({
        pod,
        observed,
        context,
        container,
        list,
        old: before,
        isRestartingAll: restarting,
      });
    });
  return {
    init: build('init', initContainersOf(pod), previous.initContainerStatuses),
    regular: byName(build('regular', pod.spec.containers, previous.containerStatuses)).map((status) =>
      withDevices(status, context),
    ),
    ephemeral: byName(build('ephemeral', ephemeralContainersOf(pod), previous.ephemeralContainerStatuses)),
  };
}

export function byName(statuses: readonly ContainerStatus[]): readonly ContainerStatus[] {
  return statuses.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** Adds device health, which is published for regular containers only. */
function withDevices(status: ContainerStatus, { devices }: StatusContext): ContainerStatus {
  const allocatedResourcesStatus = devices?.(status.name) ?? [];
  return allocatedResourcesStatus.length === 0 ? status : { ...status, allocatedResourcesStatus };
}

function containerStatus(subject: Subject): ContainerStatus {
  const { observed, container } = subject;
  const [newest, before] = allNamed(observed.containers, container.name);
  if (newest === undefined) return withStartError(subject, withoutInstance(subject));
  const status = ofInstance(newest, subject);
  const last = before === undefined ? undefined : stateOf(before, subject).terminated;
  return withStartError(
    subject,
    last === undefined ? status : { ...status, lastState: { terminated: last } },
  );
}

/**
 * Status of a container of which the runtime has no record: it was not created, or its record was
 * removed.
 */
function withoutInstance(subject: Subject): ContainerStatus {
  const { pod, container, old } = subject;
  const status = carriedOver(subject);
  if (old !== undefined && old.state?.waiting === undefined && subject.isRestartingAll)
    return withCurrentState(status, old);
  if (isLostInit(subject, status))
    return {
      ...status,
      state: {
        terminated: {
          reason: 'Completed',
          exitCode: 0,
          message: `The runtime has no record of the init container, but later containers exist: ${container.name} counts as completed`,
        },
      },
    };
  if (old?.state?.running === undefined || status.lastState?.terminated !== undefined) return status;
  // Counts the lost instance as a restart: a pod whose container disappeared must not look as if it
  // never started.
  const restarts = pod.metadata.deletionTimestamp === undefined ? 1 : 0;
  const lastState = { terminated: lostDuringDowntime };
  return { ...status, restartCount: status.restartCount + restarts, lastState };
}

/** Status of a container that was removed so that all containers of the pod can restart. */
function withCurrentState(status: ContainerStatus, old: ContainerStatus): ContainerStatus {
  const waiting = { reason: restartingAll, message: 'The container was removed to restart all of the pod' };
  const lastState = { terminated: { ...waiting, exitCode: lostExitCode } };
  return { ...status, state: { waiting }, lastState, restartCount: old.restartCount + 1 };
}

function carriedOver(subject: Subject): ContainerStatus {
  const { container, old } = subject;
  if (old?.state?.terminated !== undefined) return old;
  return {
    name: container.name,
    state: { waiting: waitingOf(subject) },
    lastState: old?.lastState,
    ready: false,
    restartCount: old?.restartCount ?? 0,
    image: container.image ?? '',
    imageID: '',
    volumeMounts: volumeMounts(subject),
  };
}

/**
 * The waiting reason. It is recomputed, except in a terminated pod, where it explains why the
 * container never ran.
 */
function waitingOf(subject: Subject): NonNullable<ContainerState['waiting']> {
  const known = hasEnded(subject.context) ? subject.old?.state?.waiting : undefined;
  return known ?? { reason: defaultReason(subject) };
}

function hasEnded({ isTerminal, previous }: StatusContext): boolean {
  return isTerminal || isTerminalPhase(previous.phase);
}

function defaultReason({ pod }: Subject): string {
  return initContainersOf(pod).length > 0 ? 'PodInitializing' : 'ContainerCreating';
}

/**
 * Whether an init container other than a sidecar completed: it has no record, but a regular
 * container was created.
 */
function isLostInit({ pod, observed, container, list }: Subject, status: ContainerStatus): boolean {
  if (list !== 'init' || isSidecar(container) || status.state?.waiting === undefined) return false;
  return pod.spec.containers.some(
    ({ name }) => (newestInstance(observed, name)?.state ?? 'unknown') !== 'unknown',
  );
}

function ofInstance(instance: ObservedContainer, subject: Subject): ContainerStatus {
  const { container, context, old } = subject;
  const containerID = fullId(instance);
  const state = withPublishedEnd(stateOf(instance, subject), subject);
  return {
    name: container.name,
    state,
    lastState: lastStateOf(containerID, old),
    ready: false,
    restartCount: restartCount(instance, old),
    image: instance.image,
    imageID: instance.imageRef,
    containerID,
    allocatedResources: container.resources?.requests,
    resources: actualResources(container, instance, {
      old,
      actuated: context.actuated?.containers[container.name],
    }),
    volumeMounts: old?.volumeMounts ?? volumeMounts(subject),
    user: instance.user === undefined ? undefined : { linux: instance.user },
  };
}

/**
 * In a terminated pod, a container that was created but never started counts as terminated and does
 * not return to waiting.
 */
function withPublishedEnd(state: ContainerState, { context, old }: Subject): ContainerState {
  const isOver = state.waiting !== undefined && hasEnded(context) && old?.state?.terminated !== undefined;
  return isOver ? old.state : state;
}

export function fullId({ runtimeName, id }: ObservedContainer): string {
  return `${runtimeName}://${id}`;
}

/**
 * Restart count from the runtime's record, but never below the published count, because records can
 * be lost.
 */
function restartCount(instance: ObservedContainer, old: ContainerStatus | undefined): number {
  const published = old?.restartCount ?? 0;
  const isOther = old?.containerID !== fullId(instance);
  const isNew = instance.state === 'running' && old?.state?.terminated !== undefined && isOther;
  const isLost = instance.state === 'unknown' && old?.state?.running !== undefined;
  if (isLost) return published + 1;
  // A created container does not count as restarted, because it may be removed before it starts.
  const own = instance.state === 'created' ? instance.restartCount - 1 : instance.restartCount;
  return Math.max(own, isNew ? published + 1 : published);
}

function lastStateOf(containerID: string, old: ContainerStatus | undefined): ContainerState | undefined {
  const ended = old?.containerID === containerID ? undefined : old?.state?.terminated;
  const terminated = ended ?? old?.lastState?.terminated;
  return terminated === undefined ? undefined : { terminated };
}

function stateOf(instance: ObservedContainer, { old, isRestartingAll }: Subject): ContainerState {
  switch (instance.state) {
    case 'running':
      return { running: { startedAt: apiTimeOfNs(instance.startedAtNs) } };
    case 'exited':
      return { terminated: terminatedState(instance) };
    case 'created':
      return { waiting: {} };
    case 'unknown':
      // A container that ran and was lost must never look like one that never ran: a run-once pod
      // would run twice.
      if (old?.state?.running === undefined) return { waiting: {} };
      return {
        terminated: isRestartingAll ? { ...lostAtTermination, reason: restartingAll } : lostAtTermination,
      };
  }
}

function terminatedState(instance: ObservedContainer): NonNullable<ContainerState['terminated']> {
  return {
    exitCode: instance.exitCode,
    reason: orNothing(instance.reason),
    message: orNothing(instance.message),
    startedAt: apiTimeOfNs(instance.startedAtNs),
    finishedAt: apiTimeOfNs(instance.finishedAtNs),
    containerID: fullId(instance),
  };
}

/**
 * Status of a container that should restart but failed to start: waiting, with the reason of the
 * failed start.
 */
function withStartError(subject: Subject, status: ContainerStatus): ContainerStatus {
  const { pod, observed, context, container, list } = subject;
  const newest = newestInstance(observed, container.name);
  const ended = status.state?.terminated;
  const isDone = list === 'init' && !isSidecar(container) && ended?.exitCode === 0;
  if (isDone || !shouldContainerStart(pod, container, newest)) return status;
  // No container of the pod starts again, so this exit is final.
  if (ended !== undefined && hasEnded(context)) return status;
  const error = context.startError(container.name);
  if (error === undefined) return status;
  const lastState = ended === undefined ? status.lastState : status.state;
  const waiting = { reason: error.reason, message: orNothing(error.message) };
  return { ...status, state: { waiting }, lastState };
}

function volumeMounts({ container, context }: Subject): readonly VolumeMountStatus[] | undefined {
  const { volumeMounts: mounts } = container;
  if (mounts === undefined || mounts.length === 0) return undefined;
  return mounts.map(({ name, mountPath, readOnly, recursiveReadOnly }) => {
    if (readOnly !== true) return { name, mountPath };
    const isAsked = recursiveReadOnly === 'Enabled' || recursiveReadOnly === 'IfPossible';
    const isEnabled = isAsked && context.recursiveReadOnly === 'supported';
    return { name, mountPath, readOnly, recursiveReadOnly: isEnabled ? 'Enabled' : 'Disabled' };
  });
}

function orNothing(text: string): string | undefined {
  return text === '' ? undefined : text;
}

const lists = [
  ['init_container', 'initContainerStatuses'],
  ['container', 'containerStatuses'],
  ['ephemeral_container', 'ephemeralContainerStatuses'],
] as const;

/** Counts each container exit once: when the pod status first reports it. */
export function endedContainers(registry: MetricRegistry): (change: StatusChange) => void {
  const ended = registry.counter({
    name: 'kubelet_terminated_containers_total',
    help: 'Containers that ended, by type, exit code and reason.',
    labels: ['container_type', 'exit_code', 'reason'],
  });
  return ({ pod, before = pod.status, after }) => {
    for (const [container_type, list] of lists) {
      for (const { exitCode, reason } of newlyEnded(before[list], after[list])) {
        ended.with({ container_type, exit_code: String(exitCode ?? 0), reason: reason ?? '' }).inc();
      }
    }
  };
}

function newlyEnded(before: readonly ContainerStatus[] = [], after: readonly ContainerStatus[] = []) {
  return after.flatMap(({ name, state }) => {
    const known = findNamed(before, name)?.state?.terminated;
    return state?.terminated === undefined || known !== undefined ? [] : [state.terminated];
  });
}
