import type { Container } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { KillReason } from '../plan/pod-actions.ts';

/** No container gets less, so that one that ends at once is not killed. */
export const minimumGraceSeconds = 2;

/** How long a container may take to end, unless an override says otherwise. */
export function graceSecondsOf(pod: Pod, container: Container, reason: KillReason): number {
  const { deletionGracePeriodSeconds } = pod.metadata;
  if (deletionGracePeriodSeconds !== undefined) return deletionGracePeriodSeconds;
  const ofProbe = probeOf(container, reason)?.terminationGracePeriodSeconds;
  return ofProbe ?? pod.spec.terminationGracePeriodSeconds ?? minimumGraceSeconds;
}

function probeOf(container: Container, reason: KillReason): Container['livenessProbe'] {
  if (reason === 'LivenessProbe') return container.livenessProbe;
  return reason === 'StartupProbe' ? container.startupProbe : undefined;
}
