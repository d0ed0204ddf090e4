import { closeSync, constants, openSync, type PathLike, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Linux only, and in no list of Node's: a handle to a place that can be gone through but not read. */
const oPath = 0o10000000;
/** Whatever is there itself, be it a link. */
export const itselfFlags = oPath | constants.O_NOFOLLOW;
/** A directory itself, not one that a link leads to. */
export const placeFlags = itselfFlags | constants.O_DIRECTORY;
export const wayFlags = oPath | constants.O_DIRECTORY;

/** A place that is held. */
export interface Place extends AsyncDisposable {
  readonly fd: number;
}

/** A call through the thread pool costs ten times what the kernel needs for it, but stops nobody when a disk is slow. */
export type CallTime = 'at-once' | 'later';

export async function openPlace(path: PathLike, flags: number, when: CallTime = 'later'): Promise<Place> {
  if (when === 'later') return await open(path, flags);
  const fd = openSync(path, flags);
  return { fd, [Symbol.asyncDispose]: async () => closeSync(fd) };
}

const mountIds = new WeakMap<Place, string>();

/** Tells mounts apart even where they are of one file system. A place stays on the one it was found on. */
export function mountIdOf(place: Place): string {
  const known = mountIds.get(place);
  if (known !== undefined) return known;
  const text = readFileSync(`/proc/self/fdinfo/${place.fd}`, 'utf8');
  const [, id] = /^mnt_id:\s*(\d+)$/m.exec(text) ?? [];
  if (id === undefined) throw new Error('the kernel does not tell what is mounted there');
  mountIds.set(place, id);
  return id;
}
