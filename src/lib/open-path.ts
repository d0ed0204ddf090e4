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

/**
 * O_PATH of Linux, which is missing in the constants of Node.js: the handle allows path lookups,
 * but no reads.
 */
const oPath = 0o10000000;
/** Opens the entry itself, even if it is a symbolic link. */
export const noFollowFlags = oPath | constants.O_NOFOLLOW;
/** Opens a directory, but not one at the end of a symbolic link. */
export const directoryNoFollowFlags = noFollowFlags | constants.O_DIRECTORY;
export const directoryFlags = oPath | constants.O_DIRECTORY;

/** An open handle of a path. */
export interface PathHandle extends AsyncDisposable {
  readonly fd: number;
}

/**
 * How a handle is opened: 'later' uses the thread pool, which costs ten times the system call but
 * does not block when a disk is slow; 'at-once' is synchronous.
 */
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

/**
 * The ID of the mount on which the handle was opened. Mounts of the same file system have different
 * IDs.
 */
export function mountIdOf(handle: PathHandle): string {
  const known = mountIds.get(handle);
  if (known !== undefined) return known;
  const text = readFileSync(`/proc/self/fdinfo/${handle.fd}`, 'utf8');
  const [, id] = /^mnt_id:\s*(\d+)$/m.exec(text) ?? [];
  if (id === undefined) throw new Error('the kernel does not report the mount ID');
  mountIds.set(handle, id);
  return id;
}

/**
 * An open directory: paths below it stay valid even if the directory is renamed or its parents are
 * replaced.
 */
export interface DirectoryHandle extends Disposable {
  /** The path of an entry in the directory; without a name the path of the directory itself. */
  at(name?: string): string;
}

/**
 * Opens the directory at the given path components (`steps`) below the root. The root may contain
 * symbolic links; a component that is a symbolic link is rejected (ENOTDIR), because any user who
 * may write below the root could create one at any time. With a mode, missing directories are
 * created. Synchronous, so only for a local disk.
 */
export function openDirectoryHandle(root: string, steps: readonly string[], mode?: number): DirectoryHandle {
  let fd = openSync(root, directoryFlags);
  try {
    for (const step of steps) {
      if (step === '' || step === '.') continue;
      if (step === '..' || step.includes('/')) throw new Error(`${step} is not a single path component`);
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

/**
 * Sets the mode of a socket file; if another entry has replaced the socket, its mode is not
 * changed.
 */
export function chmodSocket(path: string, mode: number): void {
  const fd = openSync(path, noFollowFlags);
  try {
    if (fstatSync(fd).isSocket()) chmodSync(`/proc/self/fd/${fd}`, mode);
  } finally {
    closeSync(fd);
  }
}
