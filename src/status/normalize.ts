import type { ContainerState, ContainerStatus, PodStatus } from '../kinds/index.ts';
import { ephemeralContainersOf, initContainersOf, type Pod, sameJson } from '../pods/index.ts';
import { isOurCondition } from './conditions.ts';
import { byName } from './container-statuses.ts';
import { wholeSeconds } from './context.ts';

/** All messages of a pod's containers together may have this many bytes. */
const messageBytes = 12_288;

/** The form in which statuses are kept, compared and sent: whole seconds, bounded messages, fixed order. */
export function normalizeStatus(pod: Pod, status: PodStatus): PodStatus {
  const init = initContainersOf(pod);
  const count = pod.spec.containers.length + init.length + ephemeralContainersOf(pod).length;
  const limit = Math.floor(messageBytes / Math.max(1, count));
  const all = (statuses: readonly ContainerStatus[] | undefined) =>
    statuses?.map((one) => normalizeContainer(one, limit));
  const orderOf = (name: string) => init.findIndex((one) => one.name === name);
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

/** At most so many bytes, without half a character at the end. */
function cut(text: string, limit: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= limit) return text;
  let end = limit;
  // Bytes after the first of a character begin with the bits 10.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** Whether two statuses say the same of all that is the kubelet's to say. Both must be in their normal form. */
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
