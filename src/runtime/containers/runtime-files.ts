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
 * The machine's files as far as running pods needs them: logs, links to logs, the files each container is given.
 * Failures are FILE_READ and FILE_WRITE errors; what is not there is an answer, not a failure.
 */
export interface RuntimeFiles {
  /** With all directories above it; fine when it is there already. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** The same for a directory of logs below a root. Rejects when there is a link on the way to it from the root. */
  makeDirectoryBelow(root: string, inside: string, mode: number): Promise<void>;
  /** With exactly this mode and group from its first moment on, and as told if it is there already. */
  makeSharedDirectory(path: string, as: SharedDirectory): Promise<void>;
  /** The names in a directory, sorted; none when there is no such directory. */
  names(directory: string): Promise<readonly string[]>;
  /** The end of a regular file, or undefined when it is not there. Rejects for a link: it could lead to any file. */
  readEnd(path: string, maxBytes: number): Promise<Buffer | undefined>;
  /** The same of a log below the directory of logs. Rejects with LOG_REFUSED when there is a link on the way to it. */
  readLogEnd(podLogsDir: string, path: string, maxBytes: number): Promise<Buffer | undefined>;
  /** Whether something is there, at the far end of a link too. */
  exists(path: string): Promise<boolean>;
  /** What is there; undefined for nothing. Links are not followed. */
  kindAt(path: string): Promise<FileKind | 'link' | undefined>;
  /** What is there, at the far end of a link too; undefined for nothing. */
  kindBehind(path: string): Promise<FileKind | undefined>;
  /** Where a link points, or undefined when there is no link. */
  readLink(path: string): Promise<string | undefined>;
  /** Replaces what was there, and makes the directory. */
  link(target: string, path: string): Promise<void>;
  /** Replaces what was there, and makes the directory; the mode is exact whatever the process's mask. */
  write(path: string, text: string, mode: number): Promise<void>;
  /** Makes an empty file, not its directory; what is there already stays. */
  makeFile(path: string, mode: number): Promise<void>;
  /** Puts a new file in the place of the old one, in one step, and makes the directory: nobody ever sees half of it. */
  replace(path: string, text: string, options: WriteOptions): Promise<void>;
  /** A file, a link or a whole directory without mounts; fine when it is not there. */
  remove(path: string): Promise<void>;
  /** A log and all in its directory whose names begin with its name; nothing when a link is on the way to it. */
  removeLogs(path: string): Promise<void>;
  /** Answers whether there is no such directory any more, or whether something in it keeps it. */
  removeEmptyDirectory(path: string): Promise<'gone' | 'not-empty'>;
}

export interface SharedDirectory {
  readonly mode: number;
  readonly group?: number;
  readonly ifThere: 'stays' | 'gets-them';
}

const directoryMode = 0o755;

/** The real ones. */
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
 * A call through the thread pool costs ten times what the kernel needs to look at a directory of our own. Those of
 * volumes may be served by others, who may never answer.
 */
function isLocal(path: string): boolean {
  return !path.includes('/volume') || /\/pods\/[^/]+\/volume[^/]*$/.test(path);
}

async function namesIn(directory: string): Promise<string[]> {
  return isLocal(directory) ? readdirSync(directory) : await readdir(directory);
}

/** Most are files, and for those one call will do. */
async function remove(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return;
    // Others may write to what is in there, so no step of it is taken by a name.
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

/** Made aside: whoever finds it finds it whole, also after we were killed in between. */
async function createShared(path: string, as: SharedDirectory): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) {
    if (!found.isDirectory()) throw new Error('it is no directory');
    if (as.ifThere === 'gets-them') await giveTo(path, as);
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

/** The group first: changing it may take bits away. */
async function giveTo(path: string, { mode, group }: SharedDirectory): Promise<void> {
  if (group !== undefined) await chown(path, 0, group);
  await chmod(path, mode);
}

/** A pipe somebody put there must not hold us until somebody writes to it. */
async function readEnd(path: string, maxBytes: number): Promise<Buffer> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  const facts = await file.stat();
  if (!facts.isFile()) throw new Error('it is no regular file');
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

/** In place, not by renaming: containers that have the file mounted see the same file. */
async function writeInPlace(path: string, text: string, mode: number): Promise<void> {
  await inDirectory(path, async () => {
    await using file = await open(path, inPlace, mode);
    await file.writeFile(text);
    if ((fstatSync(file.fd).mode & 0o7777) !== mode) await file.chmod(mode);
  });
}

/** Mostly its directory is there: it is made when it turns out to be missing. */
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
