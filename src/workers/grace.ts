import type { Pod } from '../pods/index.ts';

/** The minimum grace period, so that the runtime can always send SIGTERM first. */
export const minGraceSeconds = 1;

/** Returns the grace period of the pod spec. */
export function specGraceSeconds(pod: Pod | undefined): number {
  return atLeastMinimum(pod?.spec.terminationGracePeriodSeconds ?? 0);
}

/**
 * Returns the grace period of the first termination request: the shorter of the grace periods
 * requested by the deletion and by the kubelet, or that of the pod spec if neither requests one.
 */
export function requestedGraceSeconds(pod: Pod | undefined, override: number | undefined): number {
  return atLeastMinimum(shortestRequested(pod, override) ?? specGraceSeconds(pod));
}

/**
 * Returns the remaining grace period of a terminating pod after another request. `current` is
 * undefined for a pod that terminated by itself, whose grace period is that of its spec.
 */
export function shrunkGraceSeconds(
  current: number | undefined,
  pod: Pod | undefined,
  override: number | undefined,
): number {
  const given = current ?? specGraceSeconds(pod);
  return atLeastMinimum(Math.min(given, shortestRequested(pod, override) ?? given));
}

function shortestRequested(pod: Pod | undefined, override: number | undefined): number | undefined {
  const requested = [pod?.metadata.deletionGracePeriodSeconds, override].filter(
    (value) => value !== undefined,
  );
  return requested.length === 0 ? undefined : Math.min(...requested);
}

function atLeastMinimum(seconds: number): number {
  return Math.max(minGraceSeconds, seconds);
}
