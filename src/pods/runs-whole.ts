import type { ObservedPod } from './observed.ts';
import type { Pod } from './pod.ts';

/**
 * Whether all that is to run in the pod was given what it needs: nothing has to be made for it any more. An ephemeral
 * container that is yet to begin may want volumes that no other has.
 */
export function runsWhole(
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
