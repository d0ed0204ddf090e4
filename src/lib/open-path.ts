import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  type PathLike,
  readFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { errnoOf } from './errors.ts';

/** Linux only, and in no list of Node's: a handle to a place that can be gone through but not read. */
const oPath = 0o10000000;
/** Whatever is there itself, be it a link. */
export const noFollowFlags = oPath | constants.O_NOFOLLOW;
/** A directory itself, not one that a link leads to. */
export const directoryNoFollowFlags = noFollowFlags | constants.O_DIRECTORY;
export const directoryFlags = oPath | constants.O_DIRECTORY;

/** A place that is held. */
export interface PathHandle extends AsyncDisposable {
  readonly fd: number;
}

/** A call through the thread pool costs ten times what the kernel needs for it, but stops nobody when a disk is slow. */
export type CallMode = 'at-once' | 'later';

export async function openHandle(
  path: PathLike,
  flags: number,
  when: CallMode = 'later',
): Promise<PathHandle> {
  if (when === 'later') return await open(path, flags);
  const fd = openSync(path, flags);
  return { fd, [Symbol.asyncDispose]: async () => closeSync(fd) };
}

const mountIds = new WeakMap<PathHandle, string>();

/** Tells mounts apart even where they are of one file system. A place stays on the one it was found on. */
export function mountIdOf(place: PathHandle): string {
  const known = mountIds.get(place);
  if (known !== undefined) return known;
  const text = readFileSync(`/proc/self/fdinfo/${place.fd}`, 'utf8');
  const [, id] = /^mnt_id:\s*(\d+)$/m.exec(text) ?? [];
  if (id === undefined) throw new Error('the kernel does not tell what is mounted there');
  mountIds.set(place, id);
  return id;
}

/** A directory that is held: names in it lead to what is in it, whatever becomes of the way to it. */
export interface DirectoryHandle extends Disposable {
  /** The path of something in it; of the directory itself without a name. */
  at(name?: string): string;
}

/**
 * Holds the directory that the steps below the root lead to. The root may be reached through links; a step that is one is
 * refused (ENOTDIR), as whoever may write below the root may put one there at any moment. With a mode, steps that are
 * missing are made. Its calls do not go through the thread pool: for the local disk only.
 */
export function openDirectoryHandle(root: string, steps: readonly string[], mode?: number): DirectoryHandle {
  let fd = openSync(root, directoryFlags);
  try {
    for (const step of steps) {
      if (step === '' || step === '.') continue;
      if (step === '..' || step.includes('/')) throw new Error(`${step} is no step down`);
      const below = openStep(`/proc/self/fd/${fd}/${step}`, mode);
      closeSync(fd);
      fd = below;
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  const path = `/proc/self/fd/${fd}`;
  return {
    at: (name) => (name === undefined ? path : `${path}/${name}`),
    [Symbol.dispose]: () => closeSync(fd),
  };
}

function openStep(path: string, mode: number | undefined): number {
  try {
    return openSync(path, directoryNoFollowFlags);
  } catch (error) {
    if (mode === undefined || errnoOf(error) !== 'ENOENT') throw error;
  }
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  return openSync(path, directoryNoFollowFlags);
}

/** Gives a socket its mode; what has been put in its place meanwhile is left alone. */
export function chmodSocket(path: string, mode: number): void {
  const fd = openSync(path, noFollowFlags);
  try {
    if (fstatSync(fd).isSocket()) chmodSync(`/proc/self/fd/${fd}`, mode);
  } finally {
    closeSync(fd);
  }
}
