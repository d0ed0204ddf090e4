import type { Container, ResourceRequirements } from '../kinds/index.ts';
import type { PodAllocation } from './allocation.ts';
import type { Pod } from './pod.ts';
import { hasPodLevelResources, isPositive, readResources } from './resources.ts';

/** What holds for a container: without a limit of its own it may use up to what the pod as a whole may. */
export function effectiveResources(pod: Pod, { resources = {} }: Container): ResourceRequirements {
  return hasPodLevelResources(pod) ? filled(resources, pod.spec.resources) : resources;
}

/** The same for all containers of the pod: what the runtime is told of them. */
export function effectiveAllocation(pod: Pod): PodAllocation {
  const all = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const containers = all.map((container) => [container.name, effectiveResources(pod, container)] as const);
  return { containers: Object.fromEntries(containers), pod: pod.spec.resources };
}

function filled(own: ResourceRequirements, whole: ResourceRequirements = {}): ResourceRequirements {
  const has = readResources(own.limits);
  const missing = Object.entries(whole.limits ?? {}).filter(
    ([name]) => (name === 'cpu' || name === 'memory') && !isPositive(has.get(name)),
  );
  if (missing.length === 0) return own;
  return { ...own, limits: { ...own.limits, ...Object.fromEntries(missing) } };
}
