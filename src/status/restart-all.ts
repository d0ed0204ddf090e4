import type { Container, PodCondition, PodStatus } from '../kinds/index.ts';
import { initContainersOf, type ObservedPod, type Pod, shouldRestartAllContainers } from '../pods/index.ts';

export const restartingAll = 'RestartingAllContainers';
const conditionType = 'AllContainersRestarting';

/** Whether the pod has a container with a restart rule that can restart all containers. */
export function mayRestartAll(pod: Pod): boolean {
  return [...initContainersOf(pod), ...pod.spec.containers].some(hasRule);
}

function hasRule({ restartPolicyRules }: Container): boolean {
  return (restartPolicyRules ?? []).some(({ action }) => action === 'RestartAllContainers');
}

/**
 * Whether all containers are being restarted: true from the exit that requested it until all old
 * containers are removed.
 */
export function isRestartingAll(pod: Pod, observed: ObservedPod, previous: PodStatus): boolean {
  return mayRestartAll(pod) && (reportsRestartingAll(previous) || shouldRestartAllContainers(pod, observed));
}

/** Whether the status requires that all containers are removed before any is started. */
export function reportsRestartingAll({ conditions = [] }: PodStatus): boolean {
  return conditions.some(({ type, status }) => type === conditionType && status === 'True');
}

/**
 * The condition AllContainersRestarting; none for a pod without a rule that restarts all
 * containers.
 */
export function restartingConditions(
  pod: Pod,
  observed: ObservedPod,
  { phase }: PodStatus,
  previous: PodStatus,
): readonly PodCondition[] {
  if (!mayRestartAll(pod)) return [];
  const over = { type: conditionType, status: 'False' };
  if (phase === 'Succeeded') return [{ ...over, reason: 'PodCompleted' }];
  if (phase === 'Failed') return [{ ...over, reason: 'PodFailed' }];
  const names = new Set([...initContainersOf(pod), ...pod.spec.containers].map(({ name }) => name));
  const stillExists = observed.containers.some(({ name }) => names.has(name));
  if (!stillExists || !isRestartingAll(pod, observed, previous)) return [over];
  return [
    {
      type: conditionType,
      status: 'True',
      reason: 'RestartAllContainersStarted',
      message: 'a container exited in a way that restarts all containers',
    },
  ];
}
