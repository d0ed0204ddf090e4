import type { PodCondition, PodStatus } from '../../kinds/index.ts';
import { apiTime, type Instant } from '../../lib/index.ts';
import { isTerminalPhase, type Pod, sameJson } from '../../pods/index.ts';
import { findCondition, isOurCondition, isOwnedCondition, replaceReadiness } from '../conditions.ts';

export interface MergeInput {
  /** As the API has it. */
  readonly pod: Pod;
  /** What the kubelet says of it. */
  readonly ours: PodStatus;
  /** Whether anything of the pod may still run, or hold what only one pod can have. */
  readonly mayRun: boolean;
  readonly now: Instant;
}

export interface MergedStatus {
  readonly status: PodStatus;
  /** The pod has ended, but that may not be said yet: look again, also if nothing changes. */
  readonly isHeld: boolean;
}

/**
 * What the API should have: ours, except what belongs to others, and except that a pod is not called ended while it may
 * run: whoever waits for its end, a controller about to start its successor above all, relies on that.
 */
export function mergeStatus({ pod, ours, mayRun, now }: MergeInput): MergedStatus {
  const api = pod.status;
  const isEnding = !isTerminalPhase(api.phase) && isTerminalPhase(ours.phase);
  const isHeld = isEnding && mayRun;
  const status: PodStatus = {
    ...ours,
    ...(isHeld || isTerminalPhase(api.phase) ? phaseOf(api) : {}),
    // An API server does not let these be taken away.
    qosClass: ours.qosClass ?? api.qosClass,
    observedGeneration: ours.observedGeneration ?? api.observedGeneration,
    resourceClaimStatuses: api.resourceClaimStatuses,
    extendedResourceClaimStatus: api.extendedResourceClaimStatus,
    nodeAllocatableResourceClaimStatuses: api.nodeAllocatableResourceClaimStatuses,
    conditions: [
      ...othersConditions(api, isEnding && !mayRun ? disruption(api, ours, now) : undefined),
      ...(ours.conditions ?? []).filter(({ type }) => isOwnedCondition(type)),
    ],
  };
  return { status: notReadyWhenEnded(pod, status, now), isHeld };
}

function phaseOf({ phase, reason, message }: PodStatus): Partial<PodStatus> {
  return { phase, reason, message };
}

/** Those of others as they are, the shared one replaced or added where we have something to say. */
function othersConditions(api: PodStatus, shared: PodCondition | undefined): readonly PodCondition[] {
  const others = (api.conditions ?? []).filter(({ type }) => !isOwnedCondition(type));
  if (shared === undefined) return others;
  const isThere = others.some(({ type }) => type === shared.type);
  return isThere ? others.map((one) => (one.type === shared.type ? shared : one)) : [...others, shared];
}

/** It was decided when the pod was to end, and is said when the pod has ended: that is the time to give. */
function disruption(api: PodStatus, ours: PodStatus, now: Instant): PodCondition | undefined {
  const said = ours.conditions?.find(({ type }) => isOurCondition(type) && !isOwnedCondition(type));
  if (said === undefined) return undefined;
  return { ...said, lastTransitionTime: timeOf(api, said, now) };
}

/** Times move only with what they are the times of. */
function timeOf(api: PodStatus, { type, status }: PodCondition, now: Instant): string {
  const before = findCondition(api, type);
  const isSame = before?.status === status;
  return (isSame ? before.lastTransitionTime : undefined) ?? apiTime(now);
}

/** The API may have called the pod ended before we did. */
function notReadyWhenEnded(pod: Pod, status: PodStatus, now: Instant): PodStatus {
  const isReady = ['Ready', 'ContainersReady'].some((type) => findCondition(status, type)?.status === 'True');
  if (!isTerminalPhase(status.phase) || !isReady) return status;
  const replaced = replaceReadiness(pod, status);
  const conditions = replaced.conditions?.map((one) =>
    one.lastTransitionTime === undefined ? { ...one, lastTransitionTime: timeOf(pod.status, one, now) } : one,
  );
  return { ...replaced, conditions };
}

/** Whether two plain statuses say the same, in whatever order their conditions stand: that order is worth no call. */
export function sameInApi(a: PodStatus, b: PodStatus): boolean {
  return sameJson(byType(a), byType(b));
}

function byType({ conditions = [], ...rest }: PodStatus): object {
  return { ...rest, conditions: Object.fromEntries(conditions.map((one) => [one.type, one])) };
}
