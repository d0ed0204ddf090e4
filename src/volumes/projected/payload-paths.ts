import { posix } from 'node:path';
import type { Container, Volume } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { containersOf } from '../manager/volume-paths.ts';
import { cleanPath, unusable } from './payload.ts';

/** What lies in memory is gone with the machine: nothing secret ever reaches a disk. */
export type Medium = 'disk' | 'memory';

export interface PayloadKind {
  /** The directory of its volumes below `volumes` of the pod. */
  readonly directory: string;
  readonly medium: Medium;
}

export const payloadKinds = {
  configMap: { directory: 'kubernetes.io~configmap', medium: 'disk' },
  secret: { directory: 'kubernetes.io~secret', medium: 'memory' },
  downwardAPI: { directory: 'kubernetes.io~downward-api', medium: 'memory' },
  projected: { directory: 'kubernetes.io~projected', medium: 'memory' },
} as const satisfies Readonly<Record<string, PayloadKind>>;

const emptyDirKind = 'kubernetes.io~empty-dir';
const localKind = 'kubernetes.io~local-volume';
const nfsKind = 'kubernetes.io~nfs';

/** Undefined for a volume that is not filled from here. */
export function payloadKindOf(volume: Volume): PayloadKind | undefined {
  const field = Object.keys(payloadKinds).find(
    (name) => volume[name as keyof typeof payloadKinds] !== undefined,
  );
  return field === undefined ? undefined : payloadKinds[field as keyof typeof payloadKinds];
}

/** Where things of one pod are. */
export class PodVolumePaths {
  readonly pod: string;

  constructor(podsDir: string, uid: PodUid) {
    if (!mayBePodUid(uid)) throw unusable(`${JSON.stringify(uid)} is no UID of a pod`);
    this.pod = posix.join(podsDir, uid);
  }

  get volumes(): string {
    return posix.join(this.pod, 'volumes');
  }

  kind(kind: PayloadKind): string {
    return posix.join(this.volumes, kind.directory);
  }

  volume(kind: PayloadKind, name: string): string {
    return posix.join(this.kind(kind), name);
  }

  get emptyDirs(): string {
    return posix.join(this.volumes, emptyDirKind);
  }

  emptyDir(name: string): string {
    return posix.join(this.emptyDirs, name);
  }

  emptyDirMarker(name: string): string {
    return posix.join(this.pod, 'plugins', emptyDirKind, name);
  }

  /** Where the pod is shown directories of the machine that are PersistentVolumes. */
  get localVolumes(): string {
    return posix.join(this.volumes, localKind);
  }

  /** Throws for what cannot be the name of a volume. */
  localVolume(name: string): string {
    return posix.join(this.localVolumes, checkedName(name));
  }

  /** Where the pod is shown what servers have. */
  get nfsVolumes(): string {
    return posix.join(this.volumes, nfsKind);
  }

  /** Throws as above. */
  nfsVolume(name: string): string {
    return posix.join(this.nfsVolumes, checkedName(name));
  }

  get waysToLocalVolumes(): DirectoryChain {
    return [this.pod, this.volumes, this.localVolumes];
  }

  /** Where other kubelets look whether a volume was prepared. */
  marker(name: string): string {
    return this.emptyDirMarker(`wrapped_${name}`);
  }
}

/** Throws for what cannot be the name of a volume. */
export function checkedName(name: string): string {
  if (name === '' || name.startsWith('.') || name.includes('/'))
    throw unusable(`${JSON.stringify(name)} is no name of a volume`);
  return name;
}

/** Directories, each of which lies in the one before. */
export type DirectoryChain = readonly [string, ...string[]];

/** What is at the end of a way: nothing, a directory of this node, or what is somebody else's, as behind a link. */
export async function endOf(
  files: Pick<VolumeFiles, 'kindAt'>,
  way: DirectoryChain,
): Promise<'nothing' | 'ours' | 'foreign'> {
  // Mostly there is nothing, which one look tells.
  if ((await files.kindAt(way.at(-1) ?? way[0])) === undefined) return 'nothing';
  return (await firstNonDirectory(files, way)) === undefined ? 'ours' : 'foreign';
}

/** The first of the paths that is there and is no directory, such as a link to a place that is somebody else's. */
export async function firstNonDirectory(
  files: Pick<VolumeFiles, 'kindAt'>,
  paths: readonly string[],
): Promise<string | undefined> {
  for (const path of paths) {
    const kind = await files.kindAt(path);
    if (kind !== undefined && kind !== 'directory') return path;
  }
  return undefined;
}

/**
 * The directories a volume must have because containers mount other volumes there, relative to it and sorted: in a
 * volume that is read-only nobody could make them later. Of those in one another only the outermost.
 */
export function nestedMountPoints(pod: Pod, volume: string): readonly string[] {
  const found = containersOf(pod).flatMap((container) => nestedIn(container, volume));
  return [...new Set(found)].sort();
}

function nestedIn({ volumeMounts = [] }: Container, volume: string): readonly string[] {
  const points = volumeMounts.map(({ mountPath }) => cleanPath(mountPath));
  const own = volumeMounts.filter(({ name }) => name === volume).map(({ mountPath }) => cleanPath(mountPath));
  return own.flatMap((base) => {
    if (base === '..' || base.startsWith('../')) throw unusable(`invalid container mount point ${base}`);
    const inside = points.filter((point) => isBelow(point, base));
    const outermost = inside.filter((point) => !inside.some((other) => isBelow(point, other)));
    return outermost.map((point) => posix.relative(base, point));
  });
}

function isBelow(path: string, base: string): boolean {
  return path !== base && path.startsWith(base === '/' ? '/' : `${base}/`);
}
