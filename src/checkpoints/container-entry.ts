import type { ContainerStatus, PodStatus } from '../kinds/index.ts';
import { isTerminalPhase } from '../pods/index.ts';

type ListName = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses';

/** What was published of containers that the runtime need not remember: ends, and how often they came back. */
export type ContainerEntries = { readonly [list in ListName]?: readonly ContainerStatus[] };

const listNames = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;

/** All of a pod that has ended, and none of one of which nothing has ended yet: what runs, the runtime tells. */
export function containerEntries(status: PodStatus): ContainerEntries {
  const kept = (all: readonly ContainerStatus[]) =>
    isTerminalPhase(status.phase) ? all : all.filter(hasPast).map(withoutWaiting);
  const lists = listNames.map((list) => [list, kept(status[list] ?? [])] as const);
  return Object.fromEntries(lists.filter(([, { length }]) => length > 0));
}

function hasPast({ state, lastState, restartCount }: ContainerStatus): boolean {
  return restartCount > 0 || lastState?.terminated !== undefined || state?.terminated !== undefined;
}

/** Why it waits is found out anew, and changes too often to be noted. */
function withoutWaiting({ state, ...status }: ContainerStatus): ContainerStatus {
  return state === undefined || state.waiting !== undefined ? status : { ...status, state };
}

/** Each list out of a file that is there. */
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
