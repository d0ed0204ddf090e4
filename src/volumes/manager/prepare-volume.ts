import { posix } from 'node:path';
import type { Volume } from '../../kinds/index.ts';
import { compareQuantities, type Quantity, quantityValue, YieldingCounter } from '../../lib/index.ts';
import { heldLimits, isPositive, type Pod, type ResourceList } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { directoriesAbove, maxVolumeInodes, unusable } from '../projected/payload.ts';
import { firstNonDirectory, type PayloadKind, type PodVolumePaths } from '../projected/payload-paths.ts';
import type { VolumePlugin } from './volume-metrics.ts';

const volumeMode = 0o777;
const nestedMode = 0o755;
export const markerMode = 0o750;
export const markerFileMode = 0o640;
export const readyFile = 'ready';
/**
 * The number of file calls after which the work yields to the event loop, because file calls on a
 * tmpfs complete without yielding.
 */
const callsPerTurn = 256;

export interface VolumeToPrepare {
  readonly pod: Pod;
  readonly paths: PodVolumePaths;
  readonly kind: PayloadKind;
  readonly name: string;
  /** The total size of the files in the volume. */
  readonly bytes: number;
  /** Directories in this volume at which the pod mounts other volumes, relative to the volume. */
  readonly nested: readonly string[];
}

/**
 * Creates the directory of a volume and mounts its tmpfs if required. Idempotent: continues after a
 * killed attempt.
 */
export async function prepareVolume(
  files: VolumeFiles,
  volume: VolumeToPrepare,
  allocatable: ResourceList,
  signal: AbortSignal,
): Promise<void> {
  const { pod, paths, kind, name, bytes, nested } = volume;
  const directory = paths.volume(kind, name);
  const chain = [paths.pod, paths.volumes, paths.kind(kind), directory];
  const foreign = await firstNonDirectory(files, chain);
  if (foreign !== undefined) throw unusable(`${foreign} is not a directory`);
  if (kind.medium === 'disk') await files.makeDirectory(directory, volumeMode);
  else await prepareMemory(files, directory, { bytes, room: memoryLimitOf(pod, allocatable) }, signal);
  await markPrepared(files, paths.marker(name));
  await createNested(files, directory, nested);
}

/**
 * The size limit of a tmpfs: the allocatable memory of the node, or the memory limit of the pod if
 * lower. Undefined if both are unknown.
 */
export function memoryLimitOf(pod: Pod, allocatable: ResourceList): bigint | undefined {
  const known = [allocatable.get('memory'), heldLimits(pod).get('memory')].filter(isPositive);
  const [least] = known.sort(compareQuantities) as readonly Quantity[];
  return least === undefined ? undefined : quantityValue(least);
}

async function prepareMemory(
  files: VolumeFiles,
  directory: string,
  { bytes, room }: { readonly bytes: number; readonly room: bigint | undefined },
  signal: AbortSignal,
): Promise<void> {
  if (room !== undefined && BigInt(bytes) > room) {
    throw unusable(`its files have ${bytes} bytes, but there is room for ${room} bytes only`);
  }
  const mounted = await files.mountAt(directory);
  if (mounted === 'memory') return;
  if (mounted !== 'none') throw unusable(`${directory} is a mount point of something else`);
  await files.makeDirectory(directory, volumeMode);
  await files.mountMemory(directory, room, signal, maxVolumeInodes);
}

export async function markPrepared(files: VolumeFiles, marker: string): Promise<void> {
  if (await isMarked(files, marker)) return;
  await files.makeDirectory(marker, markerMode);
  await files.writeFile(posix.join(marker, readyFile), Buffer.alloc(0), { mode: markerFileMode });
}

export async function isMarked(files: VolumeFiles, marker: string): Promise<boolean> {
  return (await files.kindAt(posix.join(marker, readyFile))) !== undefined;
}

/** An existing path is kept: it may be a symbolic link in the content of the volume. */
async function createNested(files: VolumeFiles, directory: string, points: readonly string[]): Promise<void> {
  const turns = new YieldingCounter(callsPerTurn);
  const foreign = new Set<string>();
  const above = [...directoriesAbove(points.map((point) => `${point}/`))];
  // Sorting puts each parent directory before its subdirectories.
  for (const step of above.sort()) {
    if (turns.count()) await turns.yield();
    const path = posix.join(directory, step);
    const kind = foreign.has(posix.dirname(step)) ? 'other' : await files.kindAt(path);
    if (kind === undefined) await files.makeDirectory(path, nestedMode);
    else if (kind !== 'directory') foreign.add(step);
  }
}

/** The location of a volume of a pod. */
export type ResolvedVolume =
  | PathVolume
  | {
      readonly kind: 'block';
      readonly devicePath: string;
      readonly readOnly: boolean;
      readonly plugin?: VolumePlugin | undefined;
    };

export type PathVolume = {
  readonly kind: 'path';
  readonly hostPath: string;
  readonly readOnly?: boolean;
  readonly relabel?: boolean;
  readonly specName?: string;
  readonly plugin?: VolumePlugin | undefined;
};

const pluginNames = {
  emptyDir: 'kubernetes.io/empty-dir',
  hostPath: 'kubernetes.io/host-path',
  nfs: 'kubernetes.io/nfs',
} as const;

/** Returns the plugins of a volume in the pod spec; none for an unsupported type. */
export function pluginsOfVolume(volume: Volume, ofDriver: VolumePlugin | undefined): readonly VolumePlugin[] {
  if (ofDriver !== undefined) return [ofDriver];
  const plugins = (['hostPath', 'emptyDir', 'nfs'] as const).filter((kind) => volume[kind] !== undefined);
  return plugins.map((kind) => ({ name: pluginNames[kind] }));
}

/** The volume directories below a pod directory are named after their plugins. */
export function pluginOf(podDirectory: string, volume: ResolvedVolume): VolumePlugin {
  if (volume.plugin !== undefined) return volume.plugin;
  const [part, path] =
    volume.kind === 'path' ? ['volumes', volume.hostPath] : ['volumeDevices', volume.devicePath];
  const own = `${podDirectory}/${part}/`;
  if (!path.startsWith(own)) return { name: pluginNames.hostPath };
  return { name: (path.slice(own.length).split('/')[0] ?? '').replace('~', '/') };
}

/** The volume type is the name of the field that is set besides `name`. */
export function kindOf(volume: Volume): string {
  const set = Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined);
  return set?.[0] ?? 'unknown';
}
