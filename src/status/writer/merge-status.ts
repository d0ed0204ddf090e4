import type { PodCondition, PodStatus } from '../../kinds/index.ts';
import { apiTime, type Instant } from '../../lib/index.ts';
import { isTerminalPhase, type Pod, sameJson } from '../../pods/index.ts';
import { findCondition, isOurCondition, isOwnedCondition, replaceReadiness } from '../conditions.ts';

export interface MergeInput {
  /** The status in the API. */
  readonly pod: Pod;
  /** The status of the kubelet. */
  readonly ours: PodStatus;
  /** Whether anything of the pod may still run or hold exclusive resources. */
  readonly mayRun: boolean;
  readonly now: Instant;
}

export interface MergedStatus {
  readonly status: PodStatus;
  /**
   * The pod has terminated, but this must not be published yet: compare again, even without a
   * change.
   */
  readonly isHeld: boolean;
}

/**
 * Merges the status for the API: the kubelet's status, except for fields of other components, and
 * except that a pod is not reported as terminated while it may run. Controllers rely on this before
 * they create a replacement.
 */
export function mergeStatus({ pod, ours, mayRun, now }: MergeInput): MergedStatus {
  const api = pod.status;
  const isEnding = !isTerminalPhase(api.phase) && isTerminalPhase(ours.phase);
  const isHeld = isEnding && mayRun;
  const status: PodStatus = {
    ...ours,
    ...(isHeld || isTerminalPhase(api.phase) ? phaseOf(api) : {}),
    // An API server does not allow these to be removed.
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

/**
 * Keeps conditions of other components and replaces or adds the shared one if the kubelet has one.
 */
function othersConditions(api: PodStatus, shared: PodCondition | undefined): readonly PodCondition[] {
  const others = (api.conditions ?? []).filter(({ type }) => !isOwnedCondition(type));
  if (shared === undefined) return others;
  const isThere = others.some(({ type }) => type === shared.type);
  return isThere ? others.map((one) => (one.type === shared.type ? shared : one)) : [...others, shared];
}

/**
 * It was decided when the termination began and is published when the pod has terminated: that is
 * its time.
 */
function disruption(api: PodStatus, ours: PodStatus, now: Instant): PodCondition | undefined {
  const condition = ours.conditions?.find(({ type }) => isOurCondition(type) && !isOwnedCondition(type));
  if (condition === undefined) return undefined;
  return { ...condition, lastTransitionTime: timeOf(api, condition, now) };
}

/** Times change only with the values they belong to. */
function timeOf(api: PodStatus, { type, status }: PodCondition, now: Instant): string {
  const before = findCondition(api, type);
  const isSame = before?.status === status;
  return (isSame ? before.lastTransitionTime : undefined) ?? apiTime(now);
}

/** The API may have reported the pod as terminated before the kubelet did. */
function notReadyWhenEnded(pod: Pod, status: PodStatus, now: Instant): PodStatus {
  const isReady = ['Ready', 'ContainersReady'].some((type) => findCondition(status, type)?.status === 'True');
  if (!isTerminalPhase(status.phase) || !isReady) return status;
  const replaced = replaceReadiness(pod, status);
  const conditions = replaced.conditions?.map((one) =>
    one.lastTransitionTime === undefined ? { ...one, lastTransitionTime: timeOf(pod.status, one, now) } : one,
  );
  return { ...replaced, conditions };
}

/**
 * Whether two plain statuses are equal, ignoring the order of conditions, which is not worth a
 * call.
 */
export function sameInApi(a: PodStatus, b: PodStatus): boolean {
  return sameJson(byType(a), byType(b));
}

function byType({ conditions = [], ...rest }: PodStatus): object {
  return { ...rest, conditions: Object.fromEntries(conditions.map((one) => [one.type, one])) };
}
