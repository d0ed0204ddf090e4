import type { Container, ResourceRequirements } from '../kinds/index.ts';
import { initContainersOf, isSidecar } from './containers.ts';
import type { Pod } from './pod.ts';
import { qosClass } from './qos.ts';
import { isPositive, podLimits, type ResourceList, readResources } from './resources.ts';

/** The limits that the cgroup of the pod as a whole enforces, of CPU and memory; others are those of the spec. */
export function heldLimits(pod: Pod): ResourceList {
  const isKept = (name: string) => (name === 'cpu' || name === 'memory' ? isHeldTo(pod, name) : true);
  return new Map([...podLimits(pod)].filter(([name]) => isKept(name)));
}

/** Whether there is a limit on the pod as a whole: only if nothing in it is left without one. */
export function isHeldTo(pod: Pod, resource: 'cpu' | 'memory'): boolean {
  const quality = qosClass(pod);
  return quality === 'Guaranteed' || (quality === 'Burstable' && limitsAll(pod, resource));
}

/**
 * Whether every container has a limit, or the pod itself. An init
 * container after a limited sidecar counts as limited: the reference judges it together with those sidecars.
 */
function limitsAll(pod: Pod, resource: 'cpu' | 'memory'): boolean {
  const isSet = (resources: ResourceRequirements | undefined) =>
    isPositive(readResources(resources?.limits).get(resource));
  const isHeld = ({ resources }: Container) => isSet(resources);
  const init = initContainersOf(pod);
  const firstSidecar = init.findIndex((container) => isSidecar(container) && isHeld(container));
  const alone = firstSidecar === -1 ? init : init.slice(0, firstSidecar);
  return isSet(pod.spec.resources) || [...pod.spec.containers, ...alone].every(isHeld);
}
