import type { Container } from '../../kinds/index.ts';
import { ephemeralContainersOf, initContainersOf, type Pod } from '../../pods/index.ts';

/** Init containers, regular ones and ephemeral ones. */
export function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
}

/** The volumes that some container of the pod has a use for; the others need not be there. */
export function usedVolumes(pod: Pod): ReadonlySet<string> {
  const uses = containersOf(pod).flatMap(({ volumeMounts = [], volumeDevices = [] }) => [
    ...volumeMounts,
    ...volumeDevices,
  ]);
  return new Set(uses.map(({ name }) => name));
}

/** Of a pod whose files keep the modes it gives them, as programs want that refuse a key which a group can read. */
const keepModesAnnotation = 'kubeling.dev/fs-group-keeps-modes';

/** What the group of the pod gets of the files of config maps, secrets and the like. */
export function groupAccessOf({ metadata }: Pod): 'read' | 'as-is' {
  return metadata.annotations?.[keepModesAnnotation] === 'true' ? 'as-is' : 'read';
}

/** The user all containers of the pod run as; undefined as soon as one does not say or says another. */
export function commonUser(pod: Pod): number | undefined {
  const users = new Set(containersOf(pod).map((container) => userOf(pod, container)));
  const [user] = users;
  return users.size === 1 ? user : undefined;
}

function userOf(pod: Pod, { securityContext }: Container): number | undefined {
  return securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
}
