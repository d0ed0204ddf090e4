import type { Container, ContainerRestartRule, PodStatus } from '../kinds/index.ts';
import { findNamed } from './find-named.ts';
import type { ObservedContainer, ObservedPod } from './observed.ts';
import type { Pod } from './pod.ts';
import { initContainersOf, newestInstance } from './pod.ts';

/** Reported exit code of a container whose exit was not observed, as in the Go kubelet. */
export const lostExitCode = 137;

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/**
 * The effective restart policy of a container: the container's own policy takes precedence over the
 * policy of the pod; the default is Always.
 */
export function effectiveRestartPolicy(pod: Pod, container: Container): RestartPolicy {
  return asPolicy(container.restartPolicy) ?? asPolicy(pod.spec.restartPolicy) ?? 'Always';
}

function asPolicy(text: string | undefined): RestartPolicy | undefined {
  return text === 'Always' || text === 'OnFailure' || text === 'Never' ? text : undefined;
}

/** Whether a container that is not running must be started, given its newest instance. */
export function shouldContainerStart(
  pod: Pod,
  container: Container,
  newest: ObservedContainer | undefined,
): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (newest === undefined) return true;
  switch (newest.state) {
    case 'running':
      return false;
    case 'created':
    case 'unknown':
      return true;
    case 'exited':
      return restartsAfterExit(pod, container, newest.exitCode);
  }
}

/**
 * Whether the last reported status of a container with its own restart policy is an exit after
 * which the container is not restarted. The reported exit also counts when the runtime no longer
 * has the container, for example after a reboot, because the API server accepts no other state
 * after such an exit.
 */
export function hasFinalExit(pod: Pod, container: Container, last: PodStatus): boolean {
  if (container.restartPolicy === undefined) return false;
  const { terminated } = findNamed(last.containerStatuses, container.name)?.state ?? {};
  return terminated !== undefined && !restartsAfterExit(pod, container, terminated.exitCode);
}

/** The restart rules of a container apply only if it has its own restart policy. */
export function restartsAfterExit(pod: Pod, container: Container, exitCode: number): boolean {
  if (container.restartPolicy !== undefined && restarts(matchingRule(container, exitCode))) return true;
  const policy = effectiveRestartPolicy(pod, container);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function restarts(rule: ContainerRestartRule | undefined): boolean {
  return rule?.action === 'Restart' || rule?.action === 'RestartAllContainers';
}

/** The first restart rule that matches the exit code. */
function matchingRule(container: Container, exitCode: number): ContainerRestartRule | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return (exitCodes?.operator === 'In' && listed) || (exitCodes?.operator === 'NotIn' && !listed);
  });
}

/** Whether the exit of this container restarts all containers of the pod. */
export function exitRestartsAllContainers(container: Container, instance: ObservedContainer): boolean {
  const exited = instance.state === 'exited';
  return exited && matchingRule(container, instance.exitCode)?.action === 'RestartAllContainers';
}

/** Whether the exit of any container's newest instance restarts all containers of the pod. */
export function shouldRestartAllContainers(pod: Pod, observed: ObservedPod): boolean {
  return [...initContainersOf(pod), ...pod.spec.containers].some((container) => {
    const newest = newestInstance(observed, container.name);
    return newest !== undefined && exitRestartsAllContainers(container, newest);
  });
}
