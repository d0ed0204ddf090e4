import type { ContainerState, ContainerStatus, PodStatus } from '../kinds/index.ts';
import { ephemeralContainersOf, initContainersOf, type Pod, sameJson } from '../pods/index.ts';
import { isOurCondition } from './conditions.ts';
import { byName } from './container-statuses.ts';
import { wholeSeconds } from './context.ts';

/** Limit in bytes for all container messages of a pod together. */
const messageBytes = 12_288;

/**
 * Normalizes a status for caching, comparing and sending: whole seconds, bounded messages, fixed
 * order.
 */
export function normalizeStatus(pod: Pod, status: PodStatus): PodStatus {
  const init = initContainersOf(pod);
  const count = pod.spec.containers.length + init.length + ephemeralContainersOf(pod).length;
  const limit = Math.floor(messageBytes / Math.max(1, count));
  const all = (statuses: readonly ContainerStatus[] | undefined) =>
    statuses?.map((one) => normalizeContainer(one, limit));
  const order = new Map(init.map(({ name }, index) => [name, index]));
  const orderOf = (name: string) => order.get(name) ?? -1;
  const initStatuses = all(status.initContainerStatuses);
  return {
    ...status,
    startTime: wholeSeconds(status.startTime),
    conditions: status.conditions?.map((one) => ({
      ...one,
      lastTransitionTime: wholeSeconds(one.lastTransitionTime),
    })),
    initContainerStatuses: initStatuses?.toSorted((a, b) => orderOf(a.name) - orderOf(b.name)),
    containerStatuses: sorted(all(status.containerStatuses)),
    ephemeralContainerStatuses: sorted(all(status.ephemeralContainerStatuses)),
  };
}

function sorted(statuses: readonly ContainerStatus[] | undefined): readonly ContainerStatus[] | undefined {
  return statuses === undefined ? undefined : byName(statuses);
}

function normalizeContainer(status: ContainerStatus, limit: number): ContainerStatus {
  const { state, lastState } = status;
  return { ...status, state: normalizeState(state, limit), lastState: normalizeState(lastState, limit) };
}

function normalizeState(state: ContainerState | undefined, limit: number): ContainerState | undefined {
  if (state?.running !== undefined) {
    return { running: { ...state.running, startedAt: wholeSeconds(state.running.startedAt) } };
  }
  if (state?.terminated === undefined) return state;
  const { message, startedAt, finishedAt } = state.terminated;
  return {
    terminated: {
      ...state.terminated,
      message: message === undefined ? undefined : cut(message, limit),
      startedAt: wholeSeconds(startedAt),
      finishedAt: wholeSeconds(finishedAt),
    },
  };
}

/** Truncates the text to this many bytes at a character boundary. */
function cut(text: string, limit: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= limit) return text;
  let end = limit;
  // Continuation bytes of UTF-8 begin with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** Whether two normalized statuses are equal in all fields that the kubelet writes. */
export function sameStatus(a: PodStatus, b: PodStatus): boolean {
  return sameJson(ours(a), ours(b));
}

function ours(status: PodStatus): object {
  const {
    conditions = [],
    resourceClaimStatuses: _claims,
    extendedResourceClaimStatus: _extended,
    nodeAllocatableResourceClaimStatuses: _node,
    ...rest
  } = status;
  const compared = conditions
    .filter(({ type }) => isOurCondition(type))
    .map(({ type, status: is, reason, message }) => [type, { is, reason, message }] as const);
  return { ...rest, conditions: Object.fromEntries(compared) };
}
