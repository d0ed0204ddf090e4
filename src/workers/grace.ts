import type { Pod } from '../pods/index.ts';

/** No pod gets less: even a forced stop lets the runtime say goodbye. */
export const shortestGraceSeconds = 1;

/** What the pod asks for itself. */
export function specGraceSeconds(pod: Pod | undefined): number {
  return atLeastShortest(pod?.spec.terminationGracePeriodSeconds ?? 0);
}

/**
 * The time a pod gets to stop when its termination is first requested: the shorter of what its deletion and the kubelet
 * ask for, or else what its spec says.
 */
export function requestedGraceSeconds(pod: Pod | undefined, override: number | undefined): number {
  return atLeastShortest(shortestAsked(pod, override) ?? specGraceSeconds(pod));
}

/**
 * The time left to a pod that is terminating already, after one more request. `current` is undefined for a pod that
 * came to its natural end: its spec's time is what it has been given.
 */
export function shrunkGraceSeconds(
  current: number | undefined,
  pod: Pod | undefined,
  override: number | undefined,
): number {
  const given = current ?? specGraceSeconds(pod);
  return atLeastShortest(Math.min(given, shortestAsked(pod, override) ?? given));
}

function shortestAsked(pod: Pod | undefined, override: number | undefined): number | undefined {
  const asked = [pod?.metadata.deletionGracePeriodSeconds, override].filter((value) => value !== undefined);
  return asked.length === 0 ? undefined : Math.min(...asked);
}

function atLeastShortest(seconds: number): number {
  return Math.max(shortestGraceSeconds, seconds);
}
