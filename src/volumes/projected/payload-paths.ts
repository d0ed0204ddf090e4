import { posix } from 'node:path';
import type { Volume } from '../../kinds/index.ts';
import type { Pod } from '../../pods/index.ts';
import { mayBePodUid, type PodUid } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { containersOf } from '../manager/volume-paths.ts';
import { cleanPath, unusable } from './payload.ts';

/** Secrets are kept in memory so that they never reach a disk. */
export type Medium = 'disk' | 'memory';

export interface PayloadKind {
  /** The plugin's directory name below `volumes` in the pod directory. */
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

/** Returns how a payload volume is stored; undefined for other volume types. */
export function payloadKindOf(volume: Volume): PayloadKind | undefined {
  const field = Object.keys(payloadKinds).find(
    (name) => volume[name as keyof typeof payloadKinds] !== undefined,
  );
  return field === undefined ? undefined : payloadKinds[field as keyof typeof payloadKinds];
}

/** The paths of the volumes of one pod. */
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

  /** The mount path of a local PersistentVolume. */
  get localVolumes(): string {
    return posix.join(this.volumes, localKind);
  }

  /** Returns the mount path of a local PersistentVolume. Throws for an invalid volume name. */
  localVolume(name: string): string {
    return posix.join(this.localVolumes, checkedName(name));
  }

  /** The mount path of an NFS volume. */
  get nfsVolumes(): string {
    return posix.join(this.volumes, nfsKind);
  }

  /** Returns the mount path of an NFS volume. Throws for an invalid volume name. */
  nfsVolume(name: string): string {
    return posix.join(this.nfsVolumes, checkedName(name));
  }

  get localVolumesChain(): DirectoryChain {
    return [this.pod, this.volumes, this.localVolumes];
  }

  /** The marker file by which kubelets recognize a prepared volume. */
  marker(name: string): string {
    return this.emptyDirMarker(`wrapped_${name}`);
  }
}

/** Returns the name; throws if it is not a valid volume name. */
export function checkedName(name: string): string {
  if (name === '' || name.startsWith('.') || name.includes('/'))
    throw unusable(`${JSON.stringify(name)} is no name of a volume`);
  return name;
}

/** A chain of directories, each of which contains the next one. */
export type DirectoryChain = readonly [string, ...string[]];

/**
 * Classifies the last directory of the chain: missing, created by this node, or foreign, for
 * example because a parent is a symbolic link.
 */
export async function endOf(
  files: Pick<VolumeFiles, 'kindAt'>,
  chain: DirectoryChain,
): Promise<'nothing' | 'ours' | 'foreign'> {
  // Usually the last directory of the chain does not exist, so a single check is enough.
  if ((await files.kindAt(chain.at(-1) ?? chain[0])) === undefined) return 'nothing';
  return (await firstNonDirectory(files, chain)) === undefined ? 'ours' : 'foreign';
}

/**
 * Returns the first existing path of the chain that is not a directory, such as a symbolic link.
 */
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
 * The maximum number of nested mount points of all volumes of a pod: each is a directory to create
 * in a volume.
 */
const maxNestedMountPoints = 65_536;
/**
 * Caches the mount points that the volumes of each pod spec must contain. A spec never changes, and
 * each sync needs them for each volume.
 */
const nestedOfSpecs = new WeakMap<Pod['spec'], NestedMountPoints>();

interface NestedMountPoints {
  readonly points: ReadonlyMap<string, readonly string[]>;
  /** For each volume that cannot be mounted, the reason. */
  readonly invalid: ReadonlyMap<string, string>;
}

/**
 * Returns the directories that a volume must contain because containers mount other volumes there,
 * relative to the volume and sorted: they cannot be created later in a read-only volume. Of nested
 * directories only the outermost is returned. Throws VOLUME_UNUSABLE for a mount path that leads
 * out of the root directory of its container, and for a pod with too many mount points.
 */
export function nestedMountPoints(pod: Pod, volume: string): readonly string[] {
  const nested = nestedOfSpecs.get(pod.spec) ?? findNestedMountPoints(pod);
  nestedOfSpecs.set(pod.spec, nested);
  const invalid = nested.invalid.get(volume);
  if (invalid !== undefined) throw unusable(invalid);
  return nested.points.get(volume) ?? [];
}

function findNestedMountPoints(pod: Pod): NestedMountPoints {
  const invalid = new Map<string, string>();
  const found = new Map<string, Set<string>>();
  let left = maxNestedMountPoints;
  for (const { volumeMounts = [] } of containersOf(pod)) {
    const mounts = volumeMounts.map(({ name, mountPath }) => ({ name, path: cleanPath(mountPath) }));
    for (const { name, path } of mounts)
      if ((path === '..' || path.startsWith('../')) && !invalid.has(name))
        invalid.set(name, `invalid container mount point ${path}`);
    const inside = outermostInside(mounts.map(({ path }) => path));
    for (const { name, path } of mounts) {
      const points = inside.get(path) ?? [];
      if (points.length === 0) continue;
      left -= points.length;
      if (left < 0 && !invalid.has(name))
        invalid.set(name, `the pod needs more than ${maxNestedMountPoints} mount points inside its volumes`);
      if (left < 0) continue;
      const ofVolume = found.get(name) ?? new Set();
      found.set(name, ofVolume);
      for (const point of points) ofVolume.add(point);
    }
  }
  return { points: new Map([...found].map(([name, points]) => [name, [...points].sort()])), invalid };
}

/**
 * Returns for each path the outermost of the given paths below it, as relative paths. In a list
 * sorted by components each path is directly followed by all paths below it, so one pass finds for
 * each path the innermost path that contains it.
 */
function outermostInside(paths: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const inside = new Map<string, string[]>();
  const around: string[] = [];
  const keys = new Set(paths.map((path) => (path === '/' ? '' : path.replaceAll('/', '\0'))));
  for (const key of [...keys].sort()) {
    while (around.length > 0 && !key.startsWith(`${around.at(-1)}\0`)) around.pop();
    const outer = around.at(-1);
    around.push(key);
    if (outer === undefined) continue;
    const base = outer === '' ? '/' : outer.replaceAll('\0', '/');
    const point = key.slice(outer.length + 1).replaceAll('\0', '/');
    const points = inside.get(base);
    if (points === undefined) inside.set(base, [point]);
    else points.push(point);
  }
  return inside;
}
