import { claimNameOf, type Pod } from '../pods/index.ts';
import { usedVolumes } from '../volumes/index.ts';
import type { PodDirectories } from './pod-files.ts';
import type { VolumePlace } from './stats/index.ts';
import type { MountedClaim } from './volume-metrics.ts';
import type { KnownVolume } from './volume-plugins.ts';

/** The volumes of a pod that lie below its directory, and how what they hold is found out. Devices hold nothing that is known. */
export function volumePlaces(
  pod: Pod,
  directories: Pick<PodDirectories, 'of'>,
  found: ReadonlyMap<string, KnownVolume>,
): readonly VolumePlace[] {
  const { uid, namespace } = pod.metadata;
  const own = `${directories.of(uid)}/volumes/`;
  const used = usedVolumes(pod);
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const { name, emptyDir, configMap } = volume;
    const place = found.get(name);
    if (!used.has(name) || place?.kind !== 'path' || !place.hostPath.startsWith(own)) return [];
    const directory = place.hostPath;
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
  const own = `${directories.of(uid)}/volumes/`;
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const [place, claim] = [found.get(volume.name), claimNameOf(pod, volume)];
    if (claim === undefined || place?.kind !== 'path' || !place.hostPath.startsWith(own)) return [];
    return [{ namespace, claim, directory: place.hostPath }];
  });
}
