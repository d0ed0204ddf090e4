import type { PodStatus } from '../kinds/index.ts';

const reason = 'Terminated';
const message = 'Pod was terminated in response to imminent node shutdown.';
const disrupted = { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message };

/** Returns the status of a pod that was terminated by a node shutdown. */
export function shutDownStatus(status: PodStatus): PodStatus {
  return {
    ...status,
    phase: status.phase === 'Succeeded' ? 'Succeeded' : 'Failed',
    reason,
    message,
    conditions: [...(status.conditions ?? []).filter(({ type }) => type !== disrupted.type), disrupted],
  };
}

/**
 * Whether the pod failed only because of a node shutdown; a static pod then starts again after the
 * boot.
 */
export function isShutDown(status: Pick<PodStatus, 'phase' | 'reason'>): boolean {
  return status.phase === 'Failed' && status.reason === reason;
}
