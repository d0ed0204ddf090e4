import { lstatSync, readdirSync, statfsSync } from 'node:fs';
import { constants, type FileHandle, link, lstat, open, rename, rm, unlink } from 'node:fs/promises';
import { posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import {
  type DirectoryHandle,
  describeError,
  errnoOf,
  KubelingError,
  openDirectoryHandle,
} from '../../../lib/index.ts';

/** A file in a container's log directory. */
export interface LogFile {
  readonly name: string;
  readonly bytes: number;
}

/**
 * The file operations of log rotation. Failures are FILE_READ and FILE_WRITE errors with the
 * system's error as cause; a missing file is not a failure.
 */
export interface RotationFiles {
  /** Returns the size of a regular file; undefined when there is none. */
  size(path: string): Promise<number | undefined>;
  /** Returns the regular files of a directory in any order; empty when it is missing. */
  list(directory: string): Promise<readonly LogFile[]>;
  /** Renames a file; replaces an existing file of the new name. */
  rename(from: string, to: string): Promise<void>;
  /** Restores the previous name of a file unless another file has this name. */
  restore(from: string, to: string): Promise<'done' | 'taken'>;
  /** Removes a file; does nothing when it is missing. */
  remove(path: string): Promise<void>;
  /**
   * Replaces the file by `<path>.gz` via `<path>.tmp`; one of them is always readable. Does nothing
   * when the file is removed before or during the compression. Runs outside the main thread.
   */
  compress(path: string, signal: AbortSignal): Promise<void>;
  /** Returns the free bytes of the directory's file system; undefined when unknown. */
  freeBytes(directory: string): Promise<number | undefined>;
}

/** The size of chunks for compression: large, so that the main thread has little work per byte. */
const pieceBytes = 256 << 10;
/**
 * Does not follow symlinks or block on pipes, because a pod may place them in its log directory.
 */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const makeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * The RotationFiles of this machine. Synchronous calls for names and sizes are cheaper than calls
 * through the thread pool.
 */
export function realRotationFiles(): RotationFiles {
  return {
    size: (path) => reading(path, () => sizeAt(path), undefined),
    list: (directory) => reading(directory, () => filesIn(directory), []),
    rename: (from, to) => held(from, (at) => rename(at(from), at(to))),
    restore: (from, to) => held(from, (at) => putBack(at(from), at(to))),
    remove: (path) => held(path, (at) => rm(at(path), { force: true }), 'fine'),
    compress: (path, signal) => held(path, (at) => compress(at(path), signal), 'fine'),
    freeBytes: (directory) => reading(directory, () => freeBytes(directory), undefined),
  };
}

/** Converts a path to a path relative to the open directory handle. */
type At = (path: string) => string;

/**
 * Runs an operation relative to a handle of the log directory, because pods may replace directories
 * by symlinks at any time.
 */
async function held<T>(path: string, act: (at: At) => Promise<T>): Promise<T>;
async function held(path: string, act: (at: At) => Promise<void>, without: 'fine'): Promise<void>;
async function held<T>(
  path: string,
  act: (at: At) => Promise<T>,
  without: 'fine' | 'fails' = 'fails',
): Promise<T | undefined> {
  return await writing(path, async () => {
    using directory = holdLogDirectory(path);
    if (directory !== undefined) return await act((each) => directory.at(posix.basename(each)));
    if (without === 'fine') return undefined;
    throw new Error('the path is not in a log directory');
  });
}

function sizeAt(path: string): number | undefined {
  using directory = holdLogDirectory(path);
  if (directory === undefined) return undefined;
  const facts = lstatSync(directory.at(posix.basename(path)));
  return facts.isFile() ? facts.size : undefined;
}

function filesIn(path: string): readonly LogFile[] {
  using directory = holdLogDirectory(posix.join(path, 'any'));
  if (directory === undefined) return [];
  return readdirSync(directory.at()).flatMap((name) => {
    const facts = lstatSync(directory.at(name), { throwIfNoEntry: false });
    return facts?.isFile() === true ? [{ name, bytes: facts.size }] : [];
  });
}

function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Uses link and unlink: unlike rename, link never replaces an existing file. */
async function putBack(from: string, to: string): Promise<'done' | 'taken'> {
  try {
    await link(from, to);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return 'taken';
    throw error;
  }
  await unlink(from);
  return 'done';
}

async function compress(path: string, signal: AbortSignal): Promise<void> {
  const aside = `${path}.tmp`;
  const source = await openIfThere(path);
  if (source === undefined) return;
  try {
    const facts = await source.stat();
    if (!facts.isFile()) throw new Error('the path is not a regular file');
    await rm(aside, { force: true });
    await pack(source, await open(aside, makeFlags, facts.mode & 0o777), signal);
    if ((await lstat(path).catch(() => undefined)) === undefined) return;
    await rename(aside, `${path}.gz`);
    await rm(path, { force: true });
  } finally {
    await source.close().catch(() => {});
    await rm(aside, { force: true }).catch(() => {});
  }
}

/** Compresses the file in the thread pool. Closes both files, also on failure. */
async function pack(source: FileHandle, target: FileHandle, signal: AbortSignal): Promise<void> {
  const read = source.createReadStream({ highWaterMark: pieceBytes });
  const write = target.createWriteStream({ highWaterMark: pieceBytes, flush: true });
  await pipeline(read, createGzip({ chunkSize: pieceBytes }), write, { signal });
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, readFlags);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function reading<T, A>(path: string, act: () => T, absent: A): Promise<T | A> {
  try {
    return act();
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return absent;
    throw new KubelingError('FILE_READ', `Cannot read ${path}: ${describeError(error)}`, { cause: error });
  }
}

async function writing<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new KubelingError('FILE_WRITE', `Cannot write ${path}: ${describeError(error)}`, { cause: error });
  }
}

/**
 * Opens a handle to the directory of a log, `<root>/<pod>/<container>/<log>`; undefined when it is
 * missing. Pods may mount the root, so the directories of pod and container must not be symlinks.
 */
export function holdLogDirectory(path: string): DirectoryHandle | undefined {
  const [container, pod] = [posix.dirname(path), posix.dirname(posix.dirname(path))];
  try {
    return openDirectoryHandle(posix.dirname(pod), [posix.basename(pod), posix.basename(container)]);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}
