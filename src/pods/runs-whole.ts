import type { ObservedPod } from './observed.ts';
import type { Pod } from './pod.ts';

/**
 * Whether all containers of the pod have been started, so that no container or volume is still to
 * be created. An ephemeral container that has not started may need additional volumes.
 */
export function allContainersRun(
  { spec }: Pick<Pod, 'spec'>,
  { sandboxes, containers }: Pick<ObservedPod, 'sandboxes' | 'containers'>,
): boolean {
  const running = new Set(containers.flatMap(({ name, state }) => (state === 'running' ? [name] : [])));
  const begun = new Set(containers.map(({ name }) => name));
  return (
    sandboxes.some(({ state }) => state === 'ready') &&
    spec.containers.every(({ name }) => running.has(name)) &&
    (spec.ephemeralContainers ?? []).every(({ name }) => begun.has(name))
  );
}
