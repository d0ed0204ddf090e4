import type { Container, ContainerRestartRule } from '../kinds/index.ts';
import type { ObservedContainer, ObservedPod } from './observed.ts';
import type { Pod } from './pod.ts';
import { initContainersOf, newestInstance } from './pod.ts';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** The container's own policy goes before the pod's; a pod that names none restarts always. */
export function effectiveRestartPolicy(pod: Pod, container: Container): RestartPolicy {
  return asPolicy(container.restartPolicy) ?? asPolicy(pod.spec.restartPolicy) ?? 'Always';
}

function asPolicy(text: string | undefined): RestartPolicy | undefined {
  return text === 'Always' || text === 'OnFailure' || text === 'Never' ? text : undefined;
}

/** Whether a container that is not running is to be started, given its newest instance. */
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

/** Rules of the container count only where it has a policy of its own. */
export function restartsAfterExit(pod: Pod, container: Container, exitCode: number): boolean {
  if (container.restartPolicy !== undefined && restarts(matchingRule(container, exitCode))) return true;
  const policy = effectiveRestartPolicy(pod, container);
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function restarts(rule: ContainerRestartRule | undefined): boolean {
  return rule?.action === 'Restart' || rule?.action === 'RestartAllContainers';
}

/** The first rule that speaks of this exit code. */
function matchingRule(container: Container, exitCode: number): ContainerRestartRule | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return (exitCodes?.operator === 'In' && listed) || (exitCodes?.operator === 'NotIn' && !listed);
  });
}

/** Whether this exit asks for the whole pod to begin anew. */
export function exitRestartsAllContainers(container: Container, instance: ObservedContainer): boolean {
  const exited = instance.state === 'exited';
  return exited && matchingRule(container, instance.exitCode)?.action === 'RestartAllContainers';
}

/** Whether some container's newest instance ended in a way that restarts them all. */
export function shouldRestartAllContainers(pod: Pod, observed: ObservedPod): boolean {
  return [...initContainersOf(pod), ...pod.spec.containers].some((container) => {
    const newest = newestInstance(observed, container.name);
    return newest !== undefined && exitRestartsAllContainers(container, newest);
  });
}
