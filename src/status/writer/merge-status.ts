import type { PodCondition, PodStatus } from '../../kinds/index.ts';
import { apiTime, type Instant } from '../../lib/index.ts';
import { isTerminalPhase, type Pod, sameJson } from '../../pods/index.ts';
import { findCondition, isOurCondition, isOwnedCondition, replaceReadiness } from '../conditions.ts';

export interface MergeInput {
  /** The pod with the status that the API server has. */
  readonly pod: Pod;
  /** The status that the kubelet has computed. */
  readonly ours: PodStatus;
  /** Whether a container of the pod may still run or the pod may hold exclusive resources. */
  readonly mayRun: boolean;
  readonly now: Instant;
}

export interface MergedStatus {
  readonly status: PodStatus;
  /**
   * Whether a terminal phase was left out because the pod may still run, so that the status must be
   * compared again even without a change.
   */
  readonly isHeld: boolean;
}

/**
 * Merges the kubelet's status into the one of the API server: fields of other components are
 * preserved, and a terminal phase is not reported while the pod may run, because controllers create
 * a replacement after it.
 */
export function mergeStatus({ pod, ours, mayRun, now }: MergeInput): MergedStatus {
  const api = pod.status;
  const isEnding = !isTerminalPhase(api.phase) && isTerminalPhase(ours.phase);
  const isHeld = isEnding && mayRun;
  const status: PodStatus = {
    ...ours,
    ...(isHeld || isTerminalPhase(api.phase) ? phaseOf(api) : {}),
    // The API server does not allow qosClass, observedGeneration and the claim statuses to be
    // removed.
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
 * Keeps conditions of other components, and replaces or adds the condition DisruptionTarget when
 * the kubelet has one.
 */
function othersConditions(api: PodStatus, shared: PodCondition | undefined): readonly PodCondition[] {
  const others = (api.conditions ?? []).filter(({ type }) => !isOwnedCondition(type));
  if (shared === undefined) return others;
  const isThere = others.some(({ type }) => type === shared.type);
  return isThere ? others.map((one) => (one.type === shared.type ? shared : one)) : [...others, shared];
}

/**
 * DisruptionTarget gets the time of its publication as transition time: it is published only when
 * the pod has terminated.
 */
function disruption(api: PodStatus, ours: PodStatus, now: Instant): PodCondition | undefined {
  const condition = ours.conditions?.find(({ type }) => isOurCondition(type) && !isOwnedCondition(type));
  if (condition === undefined) return undefined;
  return { ...condition, lastTransitionTime: timeOf(api, condition, now) };
}

/** Keeps the transition time in the API when the condition's status is unchanged. */
function timeOf(api: PodStatus, { type, status }: PodCondition, now: Instant): string {
  const before = findCondition(api, type);
  const isSame = before?.status === status;
  return (isSame ? before.lastTransitionTime : undefined) ?? apiTime(now);
}

/**
 * Sets the Ready conditions to false when the API reports the pod as terminated, even if the
 * kubelet's status does not.
 */
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
 * Whether two statuses in canonical form are equal; a different order of conditions alone is not
 * worth a patch.
 */
export function sameInApi(a: PodStatus, b: PodStatus): boolean {
  return sameJson(byType(a), byType(b));
}

function byType({ conditions = [], ...rest }: PodStatus): object {
  return { ...rest, conditions: Object.fromEntries(conditions.map((one) => [one.type, one])) };
}
