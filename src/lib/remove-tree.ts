import { constants, type Dir, type Dirent, opendirSync } from 'node:fs';
import { open, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describeError, errnoOf, KubelingError } from './errors.ts';
import { libcFunctions } from './libc.ts';
import {
  type CallMode,
  directoryFlags,
  directoryNoFollowFlags,
  mountIdOf,
  noFollowFlags,
  openHandle,
  type PathHandle,
} from './open-path.ts';
import { YieldingCounter } from './yielding-counter.ts';

/**
 * Entries with names as bytes: users who may write to a volume may choose names that are not UTF-8.
 */
type Entry = Dirent<Buffer>;

/**
 * The maximum number of open handles: each directory level needs one, and a tree may be deeper than
 * the limit of open files.
 */
const maxHandles = 64;
const entriesPerRead = 128;
/**
 * The removal yields to the event loop after this many entries, because synchronous calls block it.
 */
const entriesPerTurn = 256;
/**
 * The maximum number of passes over a directory. Each pass removes many levels, so a tree that
 * still has entries then is being filled by another process.
 */
const maxPasses = 100_000;

type MaybePromise<T> = T | Promise<T>;

/** The file operations that a removal uses; they may differ by path. */
export interface TreeCalls {
  readMode(path: string): CallMode;
  mutations(path: string): {
    rename(from: Buffer, to: Buffer): MaybePromise<void>;
    unlink(path: Buffer): MaybePromise<void>;
    rmdir(path: Buffer): MaybePromise<void>;
  };
}

const threadPoolCalls: TreeCalls = { readMode: () => 'later', mutations: () => ({ rename, unlink, rmdir }) };

/**
 * Removes a directory and its content, but not file systems that are mounted there. Handles any
 * depth and width with few handles and little memory.
 */
export async function removeTree(directory: string, calls: TreeCalls = threadPoolCalls): Promise<void> {
  const above = dirname(directory);
  const parent = await ignoreMissing(() => openHandle(above, directoryFlags, calls.readMode(above)));
  if (parent === undefined) return;
  await using held = parent;
  await new TreeRemoval(calls).directory(held, Buffer.from(basename(directory)), directory, 0);
}

/**
 * Each step opens an entry through the handle of its parent, so that an entry replaced by a
 * symbolic link cannot lead to another directory.
 */
class TreeRemoval {
  /** The handle of the directory to remove. */
  #top: PathHandle | undefined;
  /** The number of entries that were unlinked, removed, or moved up to the top directory. */
  #done = 0;
  /** A counter for the names of moved directories, so that each name is tried once. */
  #moves = 0;
  readonly #turns = new YieldingCounter(entriesPerTurn);
  readonly #calls: TreeCalls;

  constructor(calls: TreeCalls) {
    this.#calls = calls;
  }

  async directory(above: PathHandle, name: Buffer, shown: string, steps: number): Promise<void> {
    const path = pathOf(above, name);
    const opened = await ignoreMissing(() =>
      openHandle(path, directoryNoFollowFlags, this.#calls.readMode(shown)),
    ).catch((error: unknown) => {
      throw undeletable(`directory ${shown}`, error);
    });
    if (opened === undefined) return;
    await using handle = opened;
    if (mountIdOf(handle) !== mountIdOf(above)) throw mountPointError(`directory ${shown}`);
    this.#top ??= handle;
    for (let left = maxPasses; ; left--) {
      const before = this.#done;
      await this.#content(handle, shown, steps + 1);
      const isLast = left === 0 || this.#done === before;
      if (await this.#isRemoved(above, path, shown, isLast)) break;
    }
    this.#done++;
  }

  /**
   * Removes a directory that was emptied. It is not empty if a deeper directory was moved up into
   * it; this is an error only in the last pass.
   */
  async #isRemoved(above: PathHandle, path: Buffer, shown: string, isLast: boolean): Promise<boolean> {
    try {
      await ignoreMissing(() =>
        clearingInodeFlags(() => this.#calls.mutations(shown).rmdir(path), [path, directoryOf(above)]),
      );
      return true;
    } catch (error) {
      if (isLast || errnoOf(error) !== 'ENOTEMPTY') throw undeletable(`directory ${shown}`, error);
      return false;
    }
  }

  async #content(handle: PathHandle, shown: string, steps: number): Promise<void> {
    for await (const entry of entriesOf(handle, this.#calls.readMode(shown))) {
      const inside = join(shown, entry.name.toString());
      if (!entry.isDirectory()) await this.#file(handle, pathOf(handle, entry.name), inside);
      else if (steps < maxHandles) await this.directory(handle, entry.name, inside, steps);
      else await this.#moveUp(handle, pathOf(handle, entry.name), inside);
      if (this.#turns.count()) await this.#turns.yield();
    }
  }

  /**
   * Deletes a file. It fails for a file on which a file system is mounted, because the kernel does
   * not unlink it.
   */
  async #file(handle: PathHandle, path: Buffer, shown: string): Promise<void> {
    await ignoreMissing(() =>
      clearingInodeFlags(() => this.#calls.mutations(shown).unlink(path), [path, directoryOf(handle)]),
    ).catch((error: unknown) => {
      throw undeletable(shown, error);
    });
    this.#done++;
  }

  /** The moved directory is removed by the next pass over the top directory. */
  async #moveUp(handle: PathHandle, path: Buffer, shown: string): Promise<void> {
    const top = this.#top;
    if (top === undefined) return;
    for (;;) {
      try {
        const target = pathOf(top, Buffer.from(`.removing-${this.#moves++}`));
        const protectedPaths = [path, directoryOf(handle), directoryOf(top)];
        await ignoreMissing(() =>
          clearingInodeFlags(() => this.#calls.mutations(shown).rename(path, target), protectedPaths),
        );
        this.#done++;
        return;
      } catch (error) {
        const exists = ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(errnoOf(error) ?? '');
        if (!exists) throw undeletable(`directory ${shown}`, error);
      }
    }
  }
}

function directoryOf({ fd }: PathHandle): string {
  return `/proc/self/fd/${fd}/.`;
}

function pathOf(handle: PathHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${handle.fd}/`), name]);
}

/**
 * Entries are removed one after the other, because a directory may have more entries than fit into
 * memory.
 */
async function* entriesOf(handle: PathHandle, when: CallMode): AsyncGenerator<Entry> {
  const path = `/proc/self/fd/${handle.fd}`;
  const options = { encoding: 'buffer' as BufferEncoding, bufferSize: entriesPerRead };
  const isQuick = when === 'at-once';
  await using directory: Dir = isQuick ? opendirSync(path, options) : await opendir(path, options);
  for (;;) {
    const entry = isQuick ? directory.readSync() : await directory.read();
    if (entry === null) return;
    // The types of Node.js do not express that names have the requested encoding.
    yield entry as unknown as Entry;
  }
}

/** The error shows the path of the entry, not the path through the handle. */
function undeletable(shown: string, cause: unknown): KubelingError {
  const errno = errnoOf(cause);
  if (errno === 'EBUSY') return mountPointError(shown);
  const remedy =
    errno === 'EPERM' ? '; if it is immutable or append-only, run "chattr -R -ia" on the directory' : '';
  return new KubelingError(
    'VOLUME_REMOVE',
    `cannot delete ${shown}: ${errno ?? describeError(cause)}${remedy}`,
    { cause },
  );
}

export function mountPointError(shown: string): KubelingError {
  return new KubelingError('VOLUME_REMOVE', `cannot delete ${shown}: it is a mount point`);
}

export async function ignoreMissing<T>(act: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    return rethrowUnlessMissing(error);
  }
}

export function rethrowUnlessMissing(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT') throw error;
}

/** FS_IOC_GETFLAGS and FS_IOC_SETFLAGS on 64-bit Linux. */
const getFlags = 0x80086601n;
const setFlags = 0x40086602n;
/** FS_IMMUTABLE_FL and FS_APPEND_FL. */
const deleteProtection = 0x30;
const flagsBytes = 8;

const ioctlOfLibc = () =>
  libcFunctions({ ioctl: { arguments: ['int32', 'uint64', 'pointer'], return: 'int32' } }).ioctl;
let ioctl: ReturnType<typeof ioctlOfLibc> | 'not-loaded' = 'not-loaded';

/**
 * Deletes or renames an entry. If that fails, it clears the flags immutable and append-only of the
 * entry and of the directories that contain it, and tries again. A container with
 * CAP_LINUX_IMMUTABLE can set these flags, and then not even root can delete the file. If this
 * Node.js cannot call ioctl, the first error is thrown.
 */
export async function clearingInodeFlags<T>(
  act: () => T | Promise<T>,
  paths: readonly (string | Buffer)[],
): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isProtectionError(error)) throw error;
    let cleared = 0;
    for (const path of paths) if (await clearFlags(path)) cleared++;
    if (cleared === 0) throw error;
    return await act();
  }
}

export function isProtectionError(error: unknown): boolean {
  return ['EPERM', 'EACCES'].includes(errnoOf(error) ?? '');
}

/**
 * Returns whether a flag was set and is cleared now. Only regular files and directories have flags;
 * other files are not opened, because opening a device may change it.
 */
async function clearFlags(path: string | Buffer): Promise<boolean> {
  if (ioctl === 'not-loaded') ioctl = ioctlOfLibc();
  if (ioctl === undefined) return false;
  try {
    await using held = await open(path, noFollowFlags);
    const facts = await held.stat();
    if (!facts.isFile() && !facts.isDirectory()) return false;
    await using file = await open(`/proc/self/fd/${held.fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
    const flags = Buffer.alloc(flagsBytes);
    if (ioctl(file.fd, getFlags, flags) !== 0) return false;
    const found = flags.readUInt32LE();
    if ((found & deleteProtection) === 0) return false;
    flags.writeUInt32LE((found & ~deleteProtection) >>> 0);
    return ioctl(file.fd, setFlags, flags) === 0;
  } catch {
    return false;
  }
}
