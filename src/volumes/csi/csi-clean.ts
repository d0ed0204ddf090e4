import { blocked } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import type { VolumePlace } from './csi-places.ts';

/** What a write that was cut off leaves. */
const leftover = /^\.kubeling-[0-9a-f]{16}\.tmp$/;

/** Takes away what was made here, and nothing else: what is not empty stays, and so does what is mounted. */
export async function cleanPlace(
  files: VolumeFiles,
  place: VolumePlace,
  driver: string | undefined,
): Promise<void> {
  const whose = driver === undefined ? 'and nothing says by which driver' : `by the CSI driver ${driver}`;
  if ((await files.mountAt(place.mount)) !== 'none')
    throw blocked([`${place.mount} is still mounted, ${whose}`]);
  if ((await files.removeEmptyDirectory(place.mount)) === 'not-empty')
    throw blocked([`${place.mount} has content, put there ${whose}`]);
  await files.unlink(place.data);
  await removeLeftovers(files, place.directory);
  if ((await files.removeEmptyDirectory(place.directory)) === 'not-empty')
    throw blocked([`${place.directory} has content that was not put there by this node`]);
}

/** Of writes that were cut off. */
export async function removeLeftovers(files: VolumeFiles, directory: string): Promise<void> {
  for (const name of await files.names(directory))
    if (leftover.test(name)) await files.unlink(`${directory}/${name}`);
}
