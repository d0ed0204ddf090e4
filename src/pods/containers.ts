import type { Container, EphemeralContainer } from '../kinds/index.ts';
import type { ObservedContainer, ObservedPod } from './observed.ts';
import type { Pod } from './pod.ts';

/** An init container that keeps running beside the regular ones. Ask this of init containers only. */
export function isSidecar(initContainer: Container): boolean {
  return initContainer.restartPolicy === 'Always';
}

export function initContainersOf(pod: Pod): readonly Container[] {
  return pod.spec.initContainers ?? [];
}

export function ephemeralContainersOf(pod: Pod): readonly EphemeralContainer[] {
  return pod.spec.ephemeralContainers ?? [];
}

/** The newest instance: what "the status of a container" means everywhere. */
export function newestInstance(observed: ObservedPod, name: string): ObservedContainer | undefined {
  return observed.containers.find((container) => container.name === name);
}

/** Where an event about the container points, such as spec.containers{web}; undefined when the spec lacks it. */
export function containerFieldPath(pod: Pod, name: string): string | undefined {
  const named = (container: Container) => container.name === name;
  if (pod.spec.containers.some(named)) return `spec.containers{${name}}`;
  if (initContainersOf(pod).some(named)) return `spec.initContainers{${name}}`;
  return ephemeralContainersOf(pod).some(named) ? `spec.ephemeralContainers{${name}}` : undefined;
}
