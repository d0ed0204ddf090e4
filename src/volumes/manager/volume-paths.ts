import type { PodDirectories } from '../../checkpoints/index.ts';
import type { Container } from '../../kinds/index.ts';
import { claimNameOf, ephemeralContainersOf, initContainersOf, type Pod } from '../../pods/index.ts';
import type { MeasuredDirectory } from '../../stats/index.ts';
import type { ResolvedVolume } from './prepare-volume.ts';
import type { MountedClaim } from './volume-space.ts';

/** Returns the volumes below the pod directory, and how their usage is measured. */
export function volumePaths(
  pod: Pod,
  directories: Pick<PodDirectories, 'of'>,
  found: ReadonlyMap<string, ResolvedVolume>,
): readonly MeasuredDirectory[] {
  const { uid, namespace } = pod.metadata;
  const used = usedVolumes(pod);
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const { name, emptyDir, configMap } = volume;
    const directory = pathBelow(directories.of(uid), found.get(name));
    if (!used.has(name) || directory === undefined) return [];
    const claimName = claimNameOf(pod, volume);
    const claim = claimName === undefined ? undefined : { namespace, name: claimName };
    // configMaps and memory-backed emptyDirs count as scratch space, other memory-backed volumes as
    // separate file systems.
    const isScratch = configMap !== undefined || (emptyDir !== undefined && (emptyDir.medium ?? '') === '');
    const counts = isScratch ? 'files' : 'file-system';
    return [{ name, directory, counts, isScratch, claim } as const];
  });
}

/** Returns the claims of the pod that are mounted below its directory. */
export function mountedClaims(
  pod: Pod,
  directories: Pick<PodDirectories, 'of'>,
  found: ReadonlyMap<string, ResolvedVolume>,
): readonly MountedClaim[] {
  const { uid, namespace } = pod.metadata;
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const directory = pathBelow(directories.of(uid), found.get(volume.name));
    const claim = claimNameOf(pod, volume);
    return claim === undefined || directory === undefined ? [] : [{ namespace, claim, directory }];
  });
}

/** Returns the path of the volume; undefined for a path outside the pod directory. */
function pathBelow(podDirectory: string, volume: ResolvedVolume | undefined): string | undefined {
  const path = volume?.kind === 'path' ? volume.hostPath : volume?.devicePath;
  const own = `${podDirectory}/${volume?.kind === 'path' ? 'volumes' : 'volumeDevices'}/`;
  return path?.startsWith(own) === true ? path : undefined;
}

/** Returns all init, regular and ephemeral containers of the pod. */
export function containersOf(pod: Pod): readonly Container[] {
  return [...initContainersOf(pod), ...pod.spec.containers, ...ephemeralContainersOf(pod)];
}

const usedVolumesOfSpecs = new WeakMap<Pod['spec'], ReadonlySet<string>>();

/**
 * Returns the volumes that at least one container mounts; the other volumes need no set-up.
 * Computed once per spec.
 */
export function usedVolumes(pod: Pod): ReadonlySet<string> {
  const known = usedVolumesOfSpecs.get(pod.spec);
  if (known !== undefined) return known;
  const used = new Set<string>();
  for (const { volumeMounts = [], volumeDevices = [] } of containersOf(pod)) {
    for (const { name } of volumeMounts) used.add(name);
    for (const { name } of volumeDevices) used.add(name);
  }
  usedVolumesOfSpecs.set(pod.spec, used);
  return used;
}

/**
 * The annotation of a pod whose volume files keep the modes of the spec, for programs that reject a
 * private key readable by the group.
 */
const keepModesAnnotation = 'kubeling.dev/fs-group-keeps-modes';

/** Returns the access of the pod's group to the files of payload volumes. */
export function groupAccessOf({ metadata }: Pod): 'read' | 'as-is' {
  return metadata.annotations?.[keepModesAnnotation] === 'true' ? 'as-is' : 'read';
}

/**
 * Returns the user that all containers of the pod run as; undefined if a container specifies no
 * user, or if the users of the containers differ.
 */
export function commonUser(pod: Pod): number | undefined {
  const users = new Set(containersOf(pod).map((container) => userOf(pod, container)));
  const [user] = users;
  return users.size === 1 ? user : undefined;
}

function userOf(pod: Pod, { securityContext }: Container): number | undefined {
  return securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
}
