import type { PodDirectories } from '../../checkpoints/index.ts';
import type { Container } from '../../kinds/index.ts';
import { claimNameOf, ephemeralContainersOf, initContainersOf, type Pod } from '../../pods/index.ts';
import type { MeasuredDirectory } from '../../stats/index.ts';
import type { ResolvedVolume } from './prepare-volume.ts';
import type { MountedClaim } from './volume-space.ts';

/** The volumes of a pod that lie below its directory, and how what they hold is found out. */
export function volumePaths(
  pod: Pod,
  directories: Pick<PodDirectories, 'of'>,
  found: ReadonlyMap<string, ResolvedVolume>,
): readonly MeasuredDirectory[] {
  const { uid, namespace } = pod.metadata;
  const used = usedVolumes(pod);
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const { name, emptyDir, configMap } = volume;
    const directory = placeBelow(directories.of(uid), found.get(name));
    if (!used.has(name) || directory === undefined) return [];
    const claimName = claimNameOf(pod, volume);
    const claim = claimName === undefined ? undefined : { namespace, name: claimName };
    // Others of this node's own have a file system in memory each.
    const isScratch = configMap !== undefined || (emptyDir !== undefined && (emptyDir.medium ?? '') === '');
    const counts = isScratch ? 'files' : 'file-system';
    return [{ name, directory, counts, isScratch, claim } as const];
  });
}

/** Those of its claims that lie below its directory. */
export function mountedClaims(
  pod: Pod,
  directories: Pick<PodDirectories, 'of'>,
  found: ReadonlyMap<string, ResolvedVolume>,
): readonly MountedClaim[] {
  const { uid, namespace } = pod.metadata;
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const directory = placeBelow(directories.of(uid), found.get(volume.name));
    const claim = claimNameOf(pod, volume);
    return claim === undefined || directory === undefined ? [] : [{ namespace, claim, directory }];
  });
}

/** Undefined for what is elsewhere. */
function placeBelow(podDirectory: string, volume: ResolvedVolume | undefined): string | undefined {
  const path = volume?.kind === 'path' ? volume.hostPath : volume?.devicePath;
  const own = `${podDirectory}/${volume?.kind === 'path' ? 'volumes' : 'volumeDevices'}/`;
  return path?.startsWith(own) === true ? path : undefined;
}

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
