import { posix } from 'node:path';
import { type Clock, describeError, KubelingError } from '../../lib/index.ts';
import { mapConcurrently } from '../manager/volume-operations.ts';
import { firstNonDirectory, type PodVolumePaths, payloadKinds } from '../projected/payload-paths.ts';
import type { VolumeFiles } from './volume-files.ts';

/** Something of a container may hold on for a moment after its end. */
const busyWaitsMs = [100, 400, 1_500];
/** Whoever was killed at the wrong moment mounted twice at most; more than this is not ours. */
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
 * Takes away all filled volumes of a pod, as found on the machine: whoever made them may be gone. Fine when there are
 * none. No link is followed, and of what is mounted inside a volume nothing is deleted; rejects with VOLUME_REMOVE, which
 * names every path in the way, after removing what can be removed.
 */
export async function removeVolumes(
  removal: VolumeRemoval,
  places: PodVolumePaths,
  signal: AbortSignal,
): Promise<void> {
  const { files } = removal;
  const foreign = await firstNonDirectory(files, [places.pod, places.volumes]);
  if (foreign !== undefined) throw removalBlocked([`${foreign} is no directory`]);
  const there = new Set(await files.names(places.volumes));
  const kinds = Object.values(payloadKinds).filter(({ directory }) => there.has(directory));
  const found = await Promise.all(kinds.map((kind) => volumesIn(files, places.kind(kind))));
  const volumes = found.flat().map((directory) => {
    return { directory, marker: places.marker(posix.basename(directory)) };
  });
  const problems = [...(await tryAll(removal, volumes, signal))];
  for (const kind of kinds)
    await removeIfEmpty(files, places.kind(kind)).catch((error: unknown) => {
      problems.push(describeError(error));
    });
  if (problems.length > 0) throw removalBlocked(problems);
}

/** Takes away volumes that have file systems of their own; rejects as above. */
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
  const problems = await mapConcurrently(volumes, (volume) => tryOne(removal, volume, signal));
  return problems.filter((problem) => problem !== undefined);
}

/** Behind a link they are somebody else's: then only what is in the way is answered. */
async function volumesIn(files: VolumeFiles, directory: string): Promise<readonly string[]> {
  if ((await firstNonDirectory(files, [directory])) !== undefined) return [directory];
  return (await files.names(directory)).map((name) => posix.join(directory, name));
}

async function removeIfEmpty(files: VolumeFiles, directory: string): Promise<void> {
  if ((await files.kindAt(directory)) === 'directory') await files.removeEmptyDirectory(directory);
}

/** Answers what is in the way. */
async function tryOne(
  removal: VolumeRemoval,
  volume: VolumeToRemove,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await removeOne(removal, volume, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return describeError(error);
  }
}

async function removeOne(
  removal: VolumeRemoval,
  { directory, marker }: VolumeToRemove,
  signal: AbortSignal,
): Promise<void> {
  const { files, clock } = removal;
  // First of all: without its marker every kubelet prepares a volume anew.
  await files.removeTree(marker);
  if ((await files.kindAt(directory)) !== 'directory') throw removalBlocked([`${directory} is no directory`]);
  for (let left = mostMounts; left > 0 && (await isOurMount(files, directory)); left--) {
    await unmountWithRetries(clock, directory, () => unmountOne(files, directory, signal), signal);
  }
  await files.removeTree(directory);
}

/**
 * What containers have mounted in a volume, and shown to the machine, outlives them: nobody else unmounts it. What is in
 * use stays, and keeps the volume.
 */
async function unmountOne(
  files: VolumeFiles,
  directory: string,
  signal: AbortSignal,
): Promise<'done' | 'busy'> {
  // Mostly nothing is mounted in it; if something is, the kernel refuses.
  if ((await files.unmount(directory, signal)) === 'done') return 'done';
  const inUse = await files.unmountInside(directory, signal);
  if (inUse !== undefined)
    throw removalBlocked([`cannot unmount ${directory}: ${inUse} is mounted in it and in use`]);
  return await files.unmount(directory, signal);
}

/** No volume is anything else; what others mounted stays. */
async function isOurMount(files: VolumeFiles, directory: string): Promise<boolean> {
  return ['memory', 'huge-pages'].includes(await files.mountAt(directory));
}

/** Rejects with VOLUME_REMOVE for what stays in use. */
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
