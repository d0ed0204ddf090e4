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

/** A file in the directory of a container's logs. */
export interface LogFile {
  readonly name: string;
  readonly bytes: number;
}

/**
 * The files of container logs, for whoever rotates them. Failures are FILE_READ and FILE_WRITE errors with the system's
 * own as their cause; what is not there is an answer, not a failure.
 */
export interface RotationFiles {
  /** Of a regular file; undefined when there is none. */
  size(path: string): Promise<number | undefined>;
  /** The regular files in a directory, in any order; none when there is no such directory. */
  list(directory: string): Promise<readonly LogFile[]>;
  /** Replaces what is there. */
  rename(from: string, to: string): Promise<void>;
  /** Gives a file its old name back, unless somebody has taken that. */
  putBack(from: string, to: string): Promise<'done' | 'taken'>;
  /** Fine when it is not there. */
  remove(path: string): Promise<void>;
  /**
   * Puts `<path>.gz` in the place of the file, by way of `<path>.tmp`: there is always one of them to be read. Without
   * effect when the file goes away meanwhile. Does its work outside of the main thread.
   */
  compress(path: string, signal: AbortSignal): Promise<void>;
  /** What is left on the file system of a directory; undefined when nobody knows. */
  freeBytes(directory: string): Promise<number | undefined>;
}

/** Large enough that the main thread, which hands the pieces on, has little to do for each. */
const pieceBytes = 256 << 10;
/** A pod may have put a link or a pipe there. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const makeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** The machine's own. Looking at names and sizes costs less than a way through the thread pool. */
export function realRotationFiles(): RotationFiles {
  return {
    size: (path) => reading(path, () => sizeAt(path), undefined),
    list: (directory) => reading(directory, () => filesIn(directory), []),
    rename: (from, to) => held(from, (at) => rename(at(from), at(to))),
    putBack: (from, to) => held(from, (at) => putBack(at(from), at(to))),
    remove: (path) => held(path, (at) => rm(at(path), { force: true }), 'fine'),
    compress: (path, signal) => held(path, (at) => compress(at(path), signal), 'fine'),
    freeBytes: (directory) => reading(directory, () => freeBytes(directory), undefined),
  };
}

/** Where something in the directory of a log is found by its handle. */
type At = (path: string) => string;

/** All that is done to a log happens in the one directory that is held: links may be put on the way there at any moment. */
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
    throw new Error('it is in no directory of logs');
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

/** Other than a renaming this takes no name that is in use. */
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
    if (!facts.isFile()) throw new Error('it is no regular file');
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

/** The compression itself runs in the thread pool. Closes both, also when it fails. */
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
 * Holds the directory of a log, which is `<root>/<pod>/<container>/<log>`. Undefined when there is none. Pods may have the
 * root mounted and put links there: the directories of the pod and of the container must be none.
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
