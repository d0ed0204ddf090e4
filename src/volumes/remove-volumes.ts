import { posix } from 'node:path';
import { type Clock, describeError, KubelingError } from '../lib/index.ts';
import { inTurns } from './in-turns.ts';
import { firstThatIsNoDirectory, type PodPlaces, payloadKinds } from './payload-places.ts';
import type { VolumeFiles } from './volume-files.ts';

/** Something of a container may hold on for a moment after its end. */
const busyWaitsMs = [100, 400, 1_500];
/** Whoever was killed at the wrong moment mounted twice at most; more than this is not ours. */
const mostMounts = 4;

export interface VolumeRemoval {
  readonly files: VolumeFiles;
  readonly clock: Clock;
}

/**
 * Takes away all filled volumes of a pod, as found on the machine: whoever made them may be gone. Fine when there are
 * none. No link is followed and nothing that is mounted inside a volume is touched; rejects with VOLUME_REMOVE, which
 * names every path in the way, after removing what can be removed.
 */
export async function removeVolumes(
  removal: VolumeRemoval,
  places: PodPlaces,
  signal: AbortSignal,
): Promise<void> {
  const foreign = await firstThatIsNoDirectory(removal.files, [places.pod, places.volumes]);
  if (foreign !== undefined) throw blocked([`${foreign} is no directory`]);
  const found = await Promise.all(
    Object.values(payloadKinds).map((kind) => volumesIn(removal.files, places.kind(kind))),
  );
  const problems = await inTurns(found.flat(), (directory) => tryOne(removal, places, directory, signal));
  const directories = Object.values(payloadKinds).map((kind) => places.kind(kind));
  for (const directory of directories) await removeIfEmpty(removal.files, directory);
  if (problems.some((problem) => problem !== undefined)) {
    throw blocked(problems.filter((problem) => problem !== undefined));
  }
}

/** Behind a link they are somebody else's: then only what is in the way is answered. */
async function volumesIn(files: VolumeFiles, directory: string): Promise<readonly string[]> {
  if ((await firstThatIsNoDirectory(files, [directory])) !== undefined) return [directory];
  return (await files.names(directory)).map((name) => posix.join(directory, name));
}

async function removeIfEmpty(files: VolumeFiles, directory: string): Promise<void> {
  const isEmpty =
    (await files.kindAt(directory)) === 'directory' && (await files.names(directory)).length === 0;
  if (isEmpty) await files.removeTree(directory);
}

/** Answers what is in the way. */
async function tryOne(
  removal: VolumeRemoval,
  places: PodPlaces,
  directory: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    await removeOne(removal, places, directory, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return describeError(error);
  }
}

async function removeOne(
  removal: VolumeRemoval,
  places: PodPlaces,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const { files } = removal;
  // First of all: without its marker every kubelet prepares a volume anew.
  await files.removeTree(places.marker(posix.basename(directory)));
  if ((await files.kindAt(directory)) !== 'directory') throw blocked([`${directory} is no directory`]);
  for (let left = mostMounts; left > 0 && (await files.mountAt(directory)) === 'memory'; left--) {
    await unmount(removal, directory, signal);
  }
  await files.removeTree(directory);
}

async function unmount(
  { files, clock }: VolumeRemoval,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  for (const waitMs of [...busyWaitsMs, undefined]) {
    if ((await files.unmount(directory, signal)) === 'done') return;
    if (waitMs !== undefined) await clock.sleep(waitMs, signal);
  }
  throw blocked([`${directory} is still in use`]);
}

function blocked(problems: readonly string[]): KubelingError {
  return new KubelingError('VOLUME_REMOVE', problems.join('; '));
}
