import { constants, fstatSync, lstatSync, readdirSync, readlinkSync, type Stats, statSync } from 'node:fs';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readlink,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, posix } from 'node:path';
import {
  clearingInodeFlags,
  errnoOf,
  KubelingError,
  openDirectoryHandle,
  removeTree,
  type UnresponsiveMounts,
  type WriteOptions,
  writeFileAtomic,
} from '../../lib/index.ts';
import { realLogFiles } from '../logs/log-files.ts';
import { holdLogDirectory } from '../logs/rotation/rotation-files.ts';

export type FileKind = 'directory' | 'file' | 'socket' | 'character-device' | 'block-device' | 'other';

/**
 * File operations of running pods: logs, log links and files of containers. Failures are FILE_READ
 * and FILE_WRITE errors; a missing file is not a failure.
 */
export interface RuntimeFiles {
  /** Creates the directory and its missing parents; an existing directory is no failure. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /**
   * Creates a log directory below a root. Rejects when the path below the root contains a symlink.
   */
  makeDirectoryBelow(root: string, inside: string, mode: number): Promise<void>;
  /**
   * Creates the directory atomically with this mode and group; `ifExists` selects what happens if
   * the directory already exists.
   */
  makeSharedDirectory(path: string, as: SharedDirectory): Promise<void>;
  /** Returns the sorted names in a directory; empty when it is missing. */
  names(directory: string): Promise<readonly string[]>;
  /**
   * Returns the last bytes of a regular file; undefined when it is missing. Rejects for a symlink,
   * which could point to any file.
   */
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  /**
   * Returns the last bytes of a log below the root of pod logs. Rejects with LOG_REFUSED when the
   * path contains a symlink.
   */
  readLogEnd(podLogsDir: string, path: string, maxBytes: number): Promise<Buffer | undefined>;
  /** Whether the path exists; follows symlinks. */
  exists(path: string): Promise<boolean>;
  /**
   * Returns the kind of the file at the path; undefined when the path is missing. Does not follow
   * symlinks.
   */
  kindAt(path: string): Promise<FileKind | 'link' | undefined>;
  /** Returns the kind of the file, following symlinks; undefined when the target is missing. */
  kindBehind(path: string): Promise<FileKind | undefined>;
  /** Returns the target of a symlink; undefined when the path is no symlink. */
  readLink(path: string): Promise<string | undefined>;
  /** Creates or replaces a symlink and creates its directory. */
  link(target: string, path: string): Promise<void>;
  /**
   * Creates or overwrites the file and creates its directory; the mode is exact, regardless of the
   * umask.
   */
  write(path: string, text: string, mode: number): Promise<void>;
  /** Creates an empty file, but not its directory; an existing file is left unchanged. */
  makeFile(path: string, mode: number): Promise<void>;
  /**
   * Replaces the file atomically and creates its directory; readers never see a partly written
   * file.
   */
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
  /** Removes a file, a symlink or a directory tree without mounts; a missing path is no failure. */
  remove(path: string): Promise<void>;
  /**
   * Removes a log and all files in the same directory whose names start with the name of the log;
   * does nothing when the path contains a symlink.
   */
  removeLogs(path: string): Promise<void>;
  /**
   * Removes an empty directory; returns `gone` when it no longer exists, `not-empty` when it has
   * entries.
   */
  removeEmptyDirectory(path: string): Promise<'gone' | 'not-empty'>;
}

export interface SharedDirectory {
  readonly mode: number;
  readonly group?: number;
  readonly ifExists: 'keep' | 'apply';
}

const directoryMode = 0o755;

/** The file operations of this machine. */
export function realRuntimeFiles(
  silent: Pick<UnresponsiveMounts, 'check'> = { check: async () => {} },
): RuntimeFiles {
  return {
    makeDirectory: (path, mode) =>
      writing(path, async () => void (await mkdir(path, { recursive: true, mode }))),
    makeDirectoryBelow: (root, inside, mode) =>
      writing(`${root}/${inside}`, () => createBelow(root, inside, mode)),
    async makeSharedDirectory(path, as) {
      await silent.check(path);
      await writing(path, () => createShared(path, as));
    },
    names: (directory) => reading(directory, async () => (await namesIn(directory)).sort(), []),
    readEnd: (path, maxBytes) => reading(path, () => readEnd(path, maxBytes), undefined),
    readLogEnd,
    exists: (path) =>
      reading(path, async () => (isLocal(path) ? statSync(path) : await stat(path)) !== undefined, false),
    kindAt: (path) =>
      reading(
        path,
        async () => {
          const facts = isLocal(path) ? lstatSync(path) : await lstat(path);
          return facts.isSymbolicLink() ? 'link' : kindOf(facts);
        },
        undefined,
      ),
    async kindBehind(path) {
      await silent.check(path);
      return await reading(path, async () => kindOf(await stat(path)), undefined);
    },
    readLink: (path) =>
      reading(path, async () => (isLocal(path) ? readlinkSync(path) : await readlink(path)), undefined),
    link: (target, path) =>
      writing(path, async () => {
        await inDirectory(path, () => replaceLink(target, path));
      }),
    write: (path, text, mode) => writing(path, () => writeInPlace(path, text, mode)),
    makeFile: (path, mode) => writing(path, () => writeFile(path, '', { flag: 'a', mode })),
    replace: (path, text, options) =>
      writing(path, async () => {
        await inDirectory(path, () => writeFileAtomic(path, text, options));
      }),
    remove: (path) => writing(path, () => remove(path)),
    removeLogs: (path) => writing(path, () => removeLogs(path)),
    removeEmptyDirectory: (path) => writing(path, () => removeEmpty(path)),
  };
}

/**
 * The synchronous calls of `node:fs` are ten times cheaper than the thread pool, but only safe on
 * the kubelet's own directories: the file system of a volume may be unresponsive.
 */
function isLocal(path: string): boolean {
  return !path.includes('/volume') || /\/pods\/[^/]+\/volume[^/]*$/.test(path);
}

async function namesIn(directory: string): Promise<string[]> {
  return isLocal(directory) ? readdirSync(directory) : await readdir(directory);
}

/** Tries unlink before removing a directory tree, because most paths are files. */
async function remove(path: string): Promise<void> {
  try {
    await clearingInodeFlags(() => unlink(path), [path, posix.dirname(path)]);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return;
    // removeTree resolves each name only once, so programs that write to the directory at the same
    // time cannot redirect the removal.
    await removeTree(path);
  }
}

async function createBelow(root: string, inside: string, mode: number): Promise<void> {
  await inDirectory(posix.join(root, 'any'), async () => {
    openDirectoryHandle(root, inside.split('/'), mode)[Symbol.dispose]();
  });
}

async function removeLogs(path: string): Promise<void> {
  using directory = holdLogDirectory(path);
  if (directory === undefined) return;
  const base = posix.basename(path);
  const names = readdirSync(directory.at()).filter((name) => name.startsWith(base));
  for (const name of names) await remove(directory.at(name));
}

function kindOf(facts: Stats): FileKind {
  if (facts.isDirectory()) return 'directory';
  if (facts.isFile()) return 'file';
  if (facts.isSocket()) return 'socket';
  if (facts.isCharacterDevice()) return 'character-device';
  return facts.isBlockDevice() ? 'block-device' : 'other';
}

/**
 * Creates the directory under a temporary name and renames it, so that a crash never leaves a
 * directory with a wrong mode or group.
 */
async function createShared(path: string, as: SharedDirectory): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) {
    if (!found.isDirectory()) throw new Error('the path exists and is not a directory');
    if (as.ifExists === 'apply') await giveTo(path, as);
    return;
  }
  await mkdir(dirname(path), { recursive: true, mode: directoryMode });
  const aside = await mkdtemp(`${path}.new-`);
  try {
    await giveTo(aside, as);
    await rename(aside, path);
  } catch (error) {
    await rmdir(aside).catch(() => {});
    throw error;
  }
}

/** Sets the group before the mode, because chown can clear mode bits. */
async function giveTo(path: string, { mode, group }: SharedDirectory): Promise<void> {
  if (group !== undefined) await chown(path, 0, group);
  await chmod(path, mode);
}

/** O_NONBLOCK prevents that a named pipe at this path blocks the open. */
async function readEnd(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  const facts = await file.stat();
  if (!facts.isFile()) throw new Error('the path is not a regular file');
  const { size } = facts;
  const length = Math.min(size, maxBytes);
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, size - length);
  return buffer.subarray(0, bytesRead);
}

async function readLogEnd(podLogsDir: string, path: string, maxBytes: number): Promise<Buffer | undefined> {
  await using log = await realLogFiles(podLogsDir).open(path);
  if (log === undefined) return undefined;
  const size = await log.size();
  const buffer = Buffer.alloc(Math.min(size, maxBytes));
  const bytesRead = await log.read(buffer, size - buffer.length);
  return buffer.subarray(0, bytesRead);
}

const inPlace = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/**
 * The file is overwritten instead of replaced, so that containers that mount it get the new
 * content.
 */
async function writeInPlace(path: string, text: string, mode: number): Promise<void> {
  await inDirectory(path, async () => {
    await using file = await open(path, inPlace, mode);
    await file.writeFile(text);
    if ((fstatSync(file.fd).mode & 0o7777) !== mode) await file.chmod(mode);
  });
}

/**
 * Runs the operation. If the parent directory is missing, creates it and runs the operation again.
 */
async function inDirectory(path: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' && errnoOf((error as Error).cause) !== 'ENOENT') throw error;
    await mkdir(dirname(path), { recursive: true, mode: directoryMode });
    await act();
  }
}

async function replaceLink(target: string, path: string): Promise<void> {
  try {
    await symlink(target, path);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    await rm(path, { force: true });
    await symlink(target, path);
  }
}

async function removeEmpty(path: string): Promise<'gone' | 'not-empty'> {
  try {
    await rmdir(path);
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return 'not-empty';
    if (code !== 'ENOENT') throw error;
  }
  return 'gone';
}

async function reading<T>(path: string, act: () => Promise<T>, absent: T): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EINVAL') return absent;
    throw new KubelingError('FILE_READ', `Cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function writing<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new KubelingError('FILE_WRITE', `Cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
