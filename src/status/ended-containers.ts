import type { ContainerStatus } from '../kinds/index.ts';
import type { MetricRegistry } from '../lib/index.ts';
import { findNamed } from '../pods/index.ts';
import type { StatusChange } from './status-manager.ts';

const lists = [
  ['init_container', 'initContainerStatuses'],
  ['container', 'containerStatuses'],
  ['ephemeral_container', 'ephemeralContainerStatuses'],
] as const;

/** Counts each container exit once: when the pod status first reports it. */
export function endedContainers(registry: MetricRegistry): (change: StatusChange) => void {
  const ended = registry.counter({
    name: 'kubelet_terminated_containers_total',
    help: 'Containers that ended, by type, exit code and reason.',
    labels: ['container_type', 'exit_code', 'reason'],
  });
  return ({ pod, before = pod.status, after }) => {
    for (const [container_type, list] of lists) {
      for (const { exitCode, reason } of newlyEnded(before[list], after[list])) {
        ended.with({ container_type, exit_code: String(exitCode ?? 0), reason: reason ?? '' }).inc();
      }
    }
  };
}

function newlyEnded(before: readonly ContainerStatus[] = [], after: readonly ContainerStatus[] = []) {
  return after.flatMap(({ name, state }) => {
    const known = findNamed(before, name)?.state?.terminated;
    return state?.terminated === undefined || known !== undefined ? [] : [state.terminated];
  });
}
