import type { PodDirectories } from '../../checkpoints/index.ts';
import { claimNameOf, type Pod } from '../../pods/index.ts';
import type { VolumePlace } from '../../stats/index.ts';
import type { KnownVolume } from './volume-plugins.ts';
import type { MountedClaim } from './volume-space.ts';
import { usedVolumes } from './volume-users.ts';

/** The volumes of a pod that lie below its directory, and how what they hold is found out. */
export function volumePlaces(
  pod: Pod,
  directories: Pick<PodDirectories, 'of'>,
  found: ReadonlyMap<string, KnownVolume>,
): readonly VolumePlace[] {
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
  found: ReadonlyMap<string, KnownVolume>,
): readonly MountedClaim[] {
  const { uid, namespace } = pod.metadata;
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const directory = placeBelow(directories.of(uid), found.get(volume.name));
    const claim = claimNameOf(pod, volume);
    return claim === undefined || directory === undefined ? [] : [{ namespace, claim, directory }];
  });
}

/** Undefined for what is elsewhere. */
function placeBelow(podDirectory: string, volume: KnownVolume | undefined): string | undefined {
  const path = volume?.kind === 'path' ? volume.hostPath : volume?.devicePath;
  const own = `${podDirectory}/${volume?.kind === 'path' ? 'volumes' : 'volumeDevices'}/`;
  return path?.startsWith(own) === true ? path : undefined;
}
