import { posix } from 'node:path';
import { type Clock, describeError, KubelingError } from '../../lib/index.ts';
import { mapConcurrently } from '../manager/volume-operations.ts';
import { firstNonDirectory, type PodVolumePaths, payloadKinds } from '../projected/payload-paths.ts';
import type { VolumeFiles } from './volume-files.ts';

/**
 * Delays between attempts to unmount, because files may stay in use for a moment after a container
 * has exited.
 */
const busyWaitsMs = [100, 400, 1_500];
/**
 * Maximum number of stacked mounts to unmount: a killed process may have mounted a volume twice;
 * further mounts were not made by this node.
 */
const mostMounts = 4;

export interface VolumeRemoval {
  readonly files: VolumeFiles;
  readonly clock: Clock;
}

export interface VolumeToRemove {
  readonly directory: string;
  readonly marker: string;
}

/**
 * Removes all payload volumes of a pod found on disk, whichever process created them. Missing
 * volumes count as success. No symbolic link is followed and no file in a mount inside a volume is
 * deleted. Rejects with VOLUME_REMOVE, which names every remaining path, after removing the other
 * paths.
 */
export async function removeVolumes(
  removal: VolumeRemoval,
  paths: PodVolumePaths,
  signal: AbortSignal,
): Promise<void> {
  const { files } = removal;
  const foreign = await firstNonDirectory(files, [paths.pod, paths.volumes]);
  if (foreign !== undefined) throw removalBlocked([`${foreign} is not a directory`]);
  const there = new Set(await files.names(paths.volumes));
  const kinds = Object.values(payloadKinds).filter(({ directory }) => there.has(directory));
  const found = await Promise.all(kinds.map((kind) => volumesIn(files, paths.kind(kind))));
  const volumes = found.flat().map((directory) => {
    return { directory, marker: paths.marker(posix.basename(directory)) };
  });
  const problems = [...(await tryAll(removal, volumes, signal))];
  for (const kind of kinds)
    await removeIfEmpty(files, paths.kind(kind)).catch((error: unknown) => {
      problems.push(describeError(error));
    });
  if (problems.length > 0) throw removalBlocked(problems);
}

/**
 * Removes volumes that are separate file systems. Rejects with VOLUME_REMOVE, which names every
 * remaining path.
 */
export async function removeMounted(
  removal: VolumeRemoval,
  volumes: readonly VolumeToRemove[],
  signal: AbortSignal,
): Promise<void> {
  const problems = await tryAll(removal, volumes, signal);
  if (problems.length > 0) throw removalBlocked(problems);
}

async function tryAll(
  removal: VolumeRemoval,
  volumes: readonly VolumeToRemove[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const problems = await mapConcurrently(volumes, (volume) => tryRemoval(removal, volume, signal));
  return problems.filter((problem) => problem !== undefined);
}

/**
 * Lists the volumes in a directory. For a path that is not a directory, such as a symbolic link, returns
 * the path itself, whose removal is rejected.
 */
async function volumesIn(files: VolumeFiles, directory: string): Promise<readonly string[]> {
  if ((await firstNonDirectory(files, [directory])) !== undefined) return [directory];
  return (await files.names(directory)).map((name) => posix.join(directory, name));
}

async function removeIfEmpty(files: VolumeFiles, directory: string): Promise<void> {
  if ((await files.kindAt(directory)) === 'directory') await files.removeEmptyDirectory(directory);
}

/** Removes one volume; returns what prevents the removal. */
async function tryRemoval(
  removal: VolumeRemoval,
  volume: VolumeToRemove,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await removeVolume(removal, volume, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return describeError(error);
  }
}

async function removeVolume(
  removal: VolumeRemoval,
  { directory, marker }: VolumeToRemove,
  signal: AbortSignal,
): Promise<void> {
  const { files, clock } = removal;
  // The marker is removed first, because a volume without a marker is prepared again.
  await files.removeTree(marker);
  if ((await files.kindAt(directory)) !== 'directory')
    throw removalBlocked([`${directory} is not a directory`]);
  for (let left = mostMounts; left > 0 && (await isOurMount(files, directory)); left--) {
    await unmountWithRetries(clock, directory, () => unmountVolume(files, directory, signal), signal);
  }
  await files.removeTree(directory);
}

/**
 * Unmounts the mounts inside a volume. Containers with bidirectional propagation may have created
 * them; they outlive the containers, and only the kubelet unmounts them. A mount in use keeps the
 * volume.
 */
async function unmountVolume(
  files: VolumeFiles,
  directory: string,
  signal: AbortSignal,
): Promise<'done' | 'busy'> {
  // In most cases nothing is mounted inside and this call succeeds; otherwise the kernel returns an
  // error.
  if ((await files.unmount(directory, signal)) === 'done') return 'done';
  const inUse = await files.unmountInside(directory, signal);
  if (inUse !== undefined)
    throw removalBlocked([`cannot unmount ${directory}: ${inUse} is mounted in it and in use`]);
  return await files.unmount(directory, signal);
}

/** Whether this node mounted the directory; other mounts are kept. */
async function isOurMount(files: VolumeFiles, directory: string): Promise<boolean> {
  return ['memory', 'huge-pages'].includes(await files.mountAt(directory));
}

/** Unmounts a directory with retries. Rejects with VOLUME_REMOVE when the mount stays in use. */
export async function unmountWithRetries(
  clock: Clock,
  directory: string,
  unmount: () => Promise<'done' | 'busy'>,
  signal: AbortSignal,
): Promise<void> {
  for (const waitMs of [...busyWaitsMs, undefined]) {
    if ((await unmount()) === 'done') return;
    if (waitMs !== undefined) await clock.sleep(waitMs, signal);
  }
  throw removalBlocked([`${directory} is still in use`]);
}

export function removalBlocked(problems: readonly string[]): KubelingError {
  return new KubelingError('VOLUME_REMOVE', problems.join('; '));
}
