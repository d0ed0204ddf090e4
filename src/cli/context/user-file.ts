import { chownSync, constants, lstatSync, mkdirSync, readlinkSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import {
  type DirectoryHandle,
  errnoOf,
  isWritableByOthers,
  KubelingError,
  openDirectoryHandle,
  writeFileAtomic,
} from '../../lib/index.ts';

export function backupOf(path: string): string {
  return `${path}.kubeling-backup`;
}

const mostLinks = 40;
const directoryMode = 0o750;
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Atomically changes a user's file with secrets: a concurrent reader gets the old text or the new
 * one. Symbolic links to the file are preserved. The file keeps its owner, only the owner may read
 * it, and a backup is written next to it. A new file belongs to the owner of its directory, so that
 * a call as root leaves no files that only root can read.
 *
 * Root may run this for a user who renames files concurrently. So the directory is held open, and
 * root follows a user's link only to files of the same user.
 */
export async function changeUserFile(
  path: string,
  change: (text: string) => string,
): Promise<'same' | 'made' | 'changed'> {
  const target = followLinks(resolve(path));
  try {
    using directory = holdWithMissing(target);
    const file = { ...target, name: basename(target.path), directory };
    const before = await read(file);
    const after = change(before?.text ?? '');
    if (after === (before?.text ?? '')) return 'same';
    if (before === undefined) {
      await write(file, after, { ...ownerOf(directory.at()), mode: 0o600 });
      return 'made';
    }
    await write({ ...file, name: backupOf(file.name) }, before.text, before.facts);
    await write(file, after, before.facts);
    return 'changed';
  } catch (cause) {
    if (cause instanceof KubelingError && cause.code !== 'FILE_WRITE') throw cause;
    const errno = errnoOf(cause instanceof KubelingError ? cause.cause : cause);
    if (errno === undefined) throw cause;
    const details = { path: target.path };
    throw new KubelingError('FILE_WRITE', `Cannot write ${target.path}: ${errno}`, { cause, details });
  }
}

interface Target {
  /** The path with all symbolic links resolved; another process may still change it. */
  readonly path: string;
  /** The owners, except root, of the symbolic links on the path. */
  readonly linkOwners: ReadonlySet<number>;
}

interface UserFile extends Target {
  readonly directory: DirectoryHandle;
  readonly name: string;
}

interface Facts {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** Resolves the symbolic links of a path that may not exist completely. */
function followLinks(path: string): Target {
  const linkOwners = new Set<number>();
  let left = path.split('/');
  let at = '/';
  for (let links = 0; left.length > 0; ) {
    const [step = '', ...behind] = left;
    left = behind;
    const next = resolve(at, step);
    const facts = lstatSync(next, { throwIfNoEntry: false });
    if (facts?.isSymbolicLink() !== true) {
      at = next;
      continue;
    }
    if (++links > mostLinks) throw unreadable(path, 'there are too many symbolic links on the path');
    if (facts.uid !== 0) linkOwners.add(facts.uid);
    const to = readlinkSync(next);
    if (to.startsWith('/')) at = '/';
    left = [...to.split('/'), ...left];
  }
  return { path: at, linkOwners };
}

/**
 * Opens the directory of the file. Creates it and its missing parents, each with the owner of its
 * own parent.
 */
function holdWithMissing(target: Target): DirectoryHandle {
  let held = openDirectoryHandle('/', []);
  for (const step of dirname(target.path)
    .split('/')
    .filter((each) => each !== '')) {
    using above = held;
    held = holdStep(target, above, step);
    checkPlanted(target, above, statSync(held.at()).uid);
  }
  return held;
}

function holdStep(target: Target, above: DirectoryHandle, step: string): DirectoryHandle {
  try {
    return openDirectoryHandle(above.at(), [step]);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
  }
  const { uid, gid } = ownerOf(above.at());
  checkOwner(target, uid);
  mkdirSync(above.at(step), { mode: directoryMode });
  const created = openDirectoryHandle(above.at(), [step]);
  if (isRoot()) chownSync(created.at(), uid, gid);
  return created;
}

async function read(file: UserFile): Promise<{ readonly text: string; readonly facts: Facts } | undefined> {
  const { path, directory, name } = file;
  try {
    await using opened = await open(directory.at(name), readFlags);
    const facts = await opened.stat();
    if (!facts.isFile()) throw unreadable(path, 'it is not a regular file');
    checkOwner(file, facts.uid);
    checkPlanted(file, directory, facts.uid);
    return { text: await opened.readFile('utf8'), facts: factsOf(facts) };
  } catch (cause) {
    if (cause instanceof KubelingError) throw cause;
    if (errnoOf(cause) !== 'ENOENT') throw unreadable(path, errnoOf(cause) ?? 'it failed', cause);
    checkOwner(file, ownerOf(directory.at()).uid);
    return undefined;
  }
}

/**
 * Rejects a link to another user's file: otherwise a user could make root read or change that file.
 */
function checkOwner({ path, linkOwners }: Target, owner: number): void {
  const other = isRoot() ? [...linkOwners].find((each) => each !== owner) : undefined;
  if (other === undefined) return;
  throw unreadable(path, `a link of the user ${other} leads there, but it belongs to the user ${owner}`);
}

/**
 * Rejects a file that another user may have created in a directory with several writers, such as
 * /tmp, because that user would then own credentials written by root. Files of the user who ran
 * sudo are accepted.
 */
function checkPlanted({ path }: Target, parent: DirectoryHandle, owner: number): void {
  if (!isRoot() || owner === 0 || owner === Number(process.env['SUDO_UID'])) return;
  if (!isWritableByOthers(statSync(parent.at()))) return;
  throw unreadable(path, `it belongs to the user ${owner} in a directory that other users can write to`);
}

function ownerOf(path: string): Facts {
  return factsOf(statSync(path));
}

function factsOf({ mode, uid, gid }: Facts): Facts {
  return { mode: mode & 0o700, uid, gid };
}

async function write({ directory, name }: UserFile, text: string, { mode, uid, gid }: Facts): Promise<void> {
  await writeFileAtomic(join(directory.at(), name), text, {
    mode,
    owner: isRoot() ? { uid, gid } : undefined,
  });
}

/** Whether the process runs as root: only root can change owners. */
function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function unreadable(path: string, why: string, cause?: unknown): KubelingError {
  return new KubelingError('FILE_READ', `Cannot read ${path}: ${why}`, { cause, details: { path } });
}
