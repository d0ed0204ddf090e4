import type { PodStatus } from '../kinds/index.ts';

const reason = 'Terminated';
const message = 'Pod was terminated in response to imminent node shutdown.';
const disrupted = { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message };

/** How a pod has ended that its machine took down. */
export function shutDownStatus(status: PodStatus): PodStatus {
  return {
    ...status,
    phase: status.phase === 'Succeeded' ? 'Succeeded' : 'Failed',
    reason,
    message,
    conditions: [...(status.conditions ?? []).filter(({ type }) => type !== disrupted.type), disrupted],
  };
}

/** Whether it failed for nothing but that: what a manifest wants here it wants again when the machine is back. */
export function isShutDown(status: Pick<PodStatus, 'phase' | 'reason'>): boolean {
  return status.phase === 'Failed' && status.reason === reason;
}
