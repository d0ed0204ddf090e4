import type { ContainerStatus, PodStatus } from '../kinds/index.ts';
import { isTerminalPhase } from '../pods/index.ts';

type ListName = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses';

/**
 * Container statuses to restore, because the runtime may have removed exited containers: exits and
 * restart counts.
 */
export type ContainerEntries = { readonly [list in ListName]?: readonly ContainerStatus[] };

const listNames = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;

/**
 * Returns all container statuses of a finished pod, and otherwise those of containers that have
 * exited or restarted: the runtime reports all other containers.
 */
export function containerEntries(status: PodStatus): ContainerEntries {
  const kept = (all: readonly ContainerStatus[]) =>
    isTerminalPhase(status.phase) ? all : all.filter(hasPast).map(withoutWaiting);
  const lists = listNames.map((list) => [list, kept(status[list] ?? [])] as const);
  return Object.fromEntries(lists.filter(([, { length }]) => length > 0));
}

function hasPast({ state, lastState, restartCount }: ContainerStatus): boolean {
  return restartCount > 0 || lastState?.terminated !== undefined || state?.terminated !== undefined;
}

/**
 * Removes the waiting reason, which a restarted kubelet computes again and which changes too often
 * to be stored.
 */
function withoutWaiting({ state, ...status }: ContainerStatus): ContainerStatus {
  return state === undefined || state.waiting !== undefined ? status : { ...status, state };
}

/** Whether the lists of a checkpoint file are valid container statuses. */
export function areContainerEntries(value: Readonly<Record<string, unknown>>): boolean {
  return listNames.every((list) => value[list] === undefined || isList(value[list]));
}

function isList(value: unknown): boolean {
  return Array.isArray(value) && value.every(isContainerStatus);
}

function isContainerStatus(value: unknown): boolean {
  if (!isRecord(value) || typeof value['name'] !== 'string' || typeof value['ready'] !== 'boolean')
    return false;
  const { restartCount, containerID, state, lastState } = value;
  if (!Number.isSafeInteger(restartCount) || Number(restartCount) < 0) return false;
  return (
    (containerID === undefined || typeof containerID === 'string') && [state, lastState].every(isStateOrNone)
  );
}

function isStateOrNone(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isRecord(value)) return false;
  const { running, waiting, terminated } = value;
  const hasEnded = isRecord(terminated) && Number.isSafeInteger(terminated['exitCode']);
  const others = [running, waiting].every((one) => one === undefined || isRecord(one));
  return others && (terminated === undefined || hasEnded);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
